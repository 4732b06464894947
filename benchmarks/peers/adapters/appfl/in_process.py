"""Call APPFL's own trainer and noise in one process; record its messages and its models.

python in_process.py FOLDER PART reads settings-PART.json; it writes models-PART.json and printed-PART.json.
"""

import json
import math
import sys
from functools import cache
from pathlib import Path

import torch
from appfl.algorithm.aggregator import FedAvgMAggregator
from appfl.algorithm.trainer.vanilla_trainer import VanillaTrainer
from omegaconf import OmegaConf
from opacus.accountants.utils import get_noise_multiplier
from parts import rows
from torch_parts import LogisticLoss, accuracy, torch_model

out, part = Path(sys.argv[1]), sys.argv[2]
settings = json.loads((out / f"settings-{part}.json").read_text())
paths = sorted(Path(settings["rows"]).glob("site-*.npz"))
said = []


class Logger:
    """Keeps the trainer's messages about privacy."""

    def info(self, text, *rest):
        if "DP" in str(text):
            said.append(str(text))

    def log_title(self, *rest):
        pass

    set_title = log_content = debug = warning = log_title


class Whole(torch.utils.data.Dataset):
    """All rows of a site as one item, so that a step on all rows need not collect them one by one."""

    def __init__(self, data):
        self.tensors = data.tensors

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.tensors


def trainer_for(case, path):
    """The trainer of one site."""
    data, _ = rows(path)
    steps = {"mode": "step", "num_local_steps": 1, "train_batch_size": 1}
    if case["batch"] is None:
        data = Whole(data)
    else:
        steps = {"mode": "epoch", "num_local_epochs": case["epochs"], "train_batch_size": case["batch"]}
    optimiser = {"optim": "SGD", "optim_args": {"lr": case["step"]}, "device": "cpu"}
    config = OmegaConf.create(steps | optimiser | {"use_dp": True, "optimize_memory": False} | case["dp"])
    if "target" in case:
        batches = math.ceil(len(data) / case["batch"])
        config.dp_config.noise_multiplier = opacus_noise(*case["target"], batches, case["epochs"])
    return VanillaTrainer(torch_model(), LogisticLoss(), accuracy, data, None, config, Logger())


@cache
def opacus_noise(epsilon, delta, batches, epochs):
    """The noise that Opacus needs for a budget, by its own accountant."""
    return get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=1 / batches, epochs=epochs, accountant="prv"
    )


def run(case, seed):
    """Run all rounds; return the mean of the last models. This mean and the momentum cost no privacy."""
    torch.manual_seed(seed)
    trainers = [trainer_for(case, path) for path in paths]
    config = {"client_weights_mode": "equal", "optimize_memory": False}
    config |= {"server_momentum_param_1": case["momentum"]}
    aggregator = FedAvgMAggregator(torch_model(), OmegaConf.create(config), None)
    seen, model = [], None
    for _ in range(case["rounds"]):
        local = {}
        for trainer in trainers if model else ():
            trainer.load_parameters(model)
        for i, trainer in enumerate(trainers):
            trainer.train()
            state, _ = trainer.get_parameters()
            local[str(i)] = {key.removeprefix("_module."): value for key, value in state.items()}
        model = aggregator.aggregate(local)
        seen.append(model["weight"].reshape(-1).clone())
    return torch.stack(seen[-max(1, case["tail"]) :]).mean(dim=0).tolist()


found = [run(case, case["seed"]) for case in settings["cases"]]
(out / f"printed-{part}.json").write_text(json.dumps(said[-1:]))
(out / f"models-{part}.json").write_text(json.dumps(found))
