"""NVIDIA FLARE's recipe for logistic regression, on five sites of a proof-of-concept deployment.

python job.py ROWS_FOLDER ROUNDS
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from nvflare.app_common.np.recipes.lr.fedavg import FedAvgLrRecipe
from nvflare.recipe import PocEnv

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
run = recipe.execute(PocEnv(num_clients=5))
folder = run.get_result(clean_up=False)
if "COMPLETED" not in str(run.get_status()):
    sys.exit(f"Error: the job ended as {run.get_status()}")
weights = np.load(next(Path(folder).rglob("weights.npy")))
out = Path(os.environ["PEER_FOLDER"], "model.json")
out.write_text(json.dumps(weights.reshape(-1).tolist()))
