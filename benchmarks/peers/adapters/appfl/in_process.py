"""APPFL's own trainer and its noise, called in one process: what it prints, and what it does to the model.

python in_process.py SETTINGS.json -> models.json, printed.json
"""

import json
import os
import sys
from pathlib import Path

import torch
from appfl.algorithm.aggregator import FedAvgAggregator
from appfl.algorithm.trainer.vanilla_trainer import VanillaTrainer
from omegaconf import OmegaConf
from parts import LogisticLoss, accuracy, rows, torch_model

settings = json.loads(Path(sys.argv[1]).read_text())
paths = sorted(Path(settings["rows"]).glob("site-*.npz"))
said = []


class Logger:
    """Keeps what the trainer says about privacy."""

    def info(self, text, *rest):
        if "DP" in str(text):
            said.append(str(text))

    def log_title(self, *rest):
        pass

    set_title = log_content = debug = warning = log_title


def trainer_for(case, path):
    """One site."""
    data, _ = rows(path)
    size = len(data) if case["batch"] is None else case["batch"]
    steps = {"mode": "step", "num_local_steps": 1, "train_batch_size": size}
    if "epochs" in case:
        steps |= {"mode": "epoch", "num_local_epochs": case["epochs"]}
    optimiser = {"optim": "SGD", "optim_args": {"lr": case["step"]}, "device": "cpu"}
    config = OmegaConf.create(steps | optimiser | {"use_dp": True} | case["dp"])
    return VanillaTrainer(torch_model(), LogisticLoss(), accuracy, data, None, config, Logger())


def run(case, seed):
    """All rounds; the mean of the last models, which is free."""
    torch.manual_seed(seed)
    trainers = [trainer_for(case, path) for path in paths]
    config = OmegaConf.create({"client_weights_mode": "equal"})
    aggregator = FedAvgAggregator(torch_model(), config, None)
    seen = []
    for _ in range(case["rounds"]):
        local = {}
        for i, trainer in enumerate(trainers):
            trainer.train()
            found = trainer.get_parameters()
            state = found[0] if isinstance(found, tuple) else found
            local[str(i)] = {key.removeprefix("_module."): value for key, value in state.items()}
        model = aggregator.aggregate(local)
        seen.append(model["weight"].reshape(-1).clone())
        for trainer in trainers:
            trainer.load_parameters(model)
    return torch.stack(seen[-max(1, case["tail"]) :]).mean(dim=0).tolist()


found = [[run(case, seed) for seed in range(case["seeds"])] for case in settings["cases"]]
out = Path(os.environ["PEER_FOLDER"])
(out / "printed.json").write_text(json.dumps(said[-1:]))
(out / "models.json").write_text(json.dumps(found))
(out / "model.json").write_text(json.dumps(found[0][0]))
