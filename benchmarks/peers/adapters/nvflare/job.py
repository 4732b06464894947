"""NVIDIA FLARE's recipe for logistic regression, on five sites of a proof-of-concept deployment.

python job.py ROWS_FOLDER ROUNDS [ADMIN'S STARTUP KIT, where the sites were started one by one]
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from nvflare.app_common.np.recipes.lr.fedavg import FedAvgLrRecipe
from nvflare.recipe import PocEnv, ProdEnv

rows, rounds = sys.argv[1], int(sys.argv[2])
recipe = FedAvgLrRecipe(
    name="adult",
    min_clients=5,
    num_rounds=rounds,
    damping_factor=0.8,
    num_features=105,  # and the constant
    train_script="client.py",
    train_args=f"--rows {rows}",
)
env = ProdEnv(sys.argv[3], login_timeout=60.0) if len(sys.argv) > 3 else PocEnv(num_clients=5)
run = recipe.execute(env)
folder = run.get_result(clean_up=False)
if "COMPLETED" not in str(run.get_status()):
    sys.exit(f"Error: the job ended as {run.get_status()}")
weights = np.load(next(Path(folder).rglob("weights.npy")))
out = Path(os.environ["PEER_FOLDER"], "model.json")
out.write_text(json.dumps(weights.reshape(-1).tolist()))
