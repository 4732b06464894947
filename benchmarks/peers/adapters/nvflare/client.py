"""One site of NVIDIA FLARE: the gradient and the Hessian of its rows, as in the Newton-Raphson example."""

import argparse
from pathlib import Path

import numpy as np
import nvflare.client as flare
from marks import mark
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.np.constants import NPConstants

SCALE = 20.0  # the controller adds 1 to the Hessian's diagonal, which is large for rows of norm 1

parser = argparse.ArgumentParser()
parser.add_argument("--rows")
folder = Path(parser.parse_args().rows)

flare.init()
name = flare.get_site_name()  # site-1 ... site-5
rows = np.load(folder / f"site-{int(name.removeprefix('site-')) - 1}.npz")
X, y = np.asarray(rows["X"]), (rows["y"] > 0).astype(float)[:, None]

while flare.is_running():
    model = flare.receive()
    weights = model.params[NPConstants.NUMPY_KEY]
    chance = 1 / (1 + np.exp(-X @ weights))
    gradient, hessian = X.T @ (y - chance), X.T @ (chance * (1 - chance) * X)
    found = FLModel(
        params={"gradient": SCALE * gradient, "hessian": SCALE * hessian},
        params_type=ParamsType.FULL,
        meta={FLMetaKey.NUM_STEPS_CURRENT_ROUND: len(y)},
    )
    flare.send(found)
    if name == "site-1":
        mark(model.current_round + 1)
