"""The same model in torch, with its loss and metric, for the trainer with differential privacy."""

import torch
from parts import FEATURES


def torch_model():
    """A linear model without an intercept, because the rows have a constant column."""
    model = torch.nn.Linear(FEATURES, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    return model


class LogisticLoss(torch.nn.Module):
    """Mean logistic loss."""

    def forward(self, margins, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(margins[..., 0], y.float())


def accuracy(y, margins):
    """The share of rows classified correctly."""
    return float(((margins.reshape(-1) > 0) == (y.reshape(-1) > 0)).mean())
