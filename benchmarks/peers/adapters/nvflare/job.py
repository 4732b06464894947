"""NVIDIA FLARE's recipe for logistic regression, on five sites of a proof-of-concept deployment.

python job.py ROWS_FOLDER ROUNDS [STARTUP KIT OF THE ADMINISTRATOR, if the sites were started one by one]
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from nvflare.app_common.np.recipes.lr.fedavg import FedAvgLrRecipe
from nvflare.recipe import PocEnv, ProdEnv


def finish(recipe, ends=("COMPLETED",)):
    """Run the job until FLARE reports one of the statuses `ends`; return the model."""
    recipe.add_server_config({"server": {"task_request_interval": 0.1}})  # the default is two seconds
    env = ProdEnv(sys.argv[3], login_timeout=60.0) if len(sys.argv) > 3 else PocEnv(num_clients=5)
    run = recipe.execute(env)
    folder = run.get_result(clean_up=False)
    status = str(run.get_status())
    if not any(end in status for end in ends):
        sys.exit(f"Error: the job ended as {status}")
    weights = np.load(next(Path(folder).rglob("weights.npy")))
    out = Path(os.environ["PEER_FOLDER"])
    (out / "status.txt").write_text(status.rpartition(":")[2])
    (out / "model.json").write_text(json.dumps(weights.reshape(-1).tolist()))


if __name__ == "__main__":
    recipe = FedAvgLrRecipe(
        name="adult",
        min_clients=5,
        num_rounds=int(sys.argv[2]),
        damping_factor=1.0,
        num_features=105,  # plus the constant
        train_script="client.py",
        train_args=f"--rows {sys.argv[1]}",
    )
    finish(recipe)
