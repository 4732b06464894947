"""Count epsilon with Opacus in APPFL's trainer, in a client that is killed."""

import torch
from appfl.algorithm.trainer.vanilla_trainer import VanillaTrainer
from counting import count
from omegaconf import OmegaConf
from parts import FEATURES
from torch_parts import LogisticLoss, accuracy, torch_model

said = []


class Logger:
    """Keeps the trainer's messages about privacy."""

    def info(self, text, *rest):
        if "DP" in str(text):
            said.append(str(text))

    def log_title(self, *rest):
        pass

    set_title = log_content = debug = warning = log_title


data = torch.utils.data.TensorDataset(torch.eye(FEATURES), torch.ones(FEATURES, dtype=torch.int64))
settings = {"mode": "epoch", "num_local_epochs": 1, "train_batch_size": 20, "device": "cpu"}
settings |= {"optim": "SGD", "optim_args": {"lr": 0.1}, "optimize_memory": False}
settings |= {"use_dp": True, "dp_mechanism": "opacus"}
settings |= {"dp_config": {"noise_multiplier": 2.0, "max_grad_norm": 1.0}}
config = OmegaConf.create(settings)
trainer = VanillaTrainer(torch_model(), LogisticLoss(), accuracy, data, None, config, Logger())


def spend():
    """Train one local round; return the epsilon so far."""
    trainer.train()
    return float(said[-1].partition("= ")[2].partition(",")[0])


count(spend)
