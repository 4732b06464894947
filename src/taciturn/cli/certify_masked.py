"""`taciturn certify --method masked`: what a masked run costs, whoever colludes, from settings alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from .options import LossName, usage_errors

if TYPE_CHECKING:
    from ..privacy.certificate.certificate import Certificate

_NEEDED = ("sites", "samples", "dimension", "epsilon", "colluding")
_ALIEN = ("noise", "C", "degree", "penalty", "rate", "std", "dual_step", "output_rate", "output_std")


def masked_certificate(given: dict[str, Any]) -> Certificate:
    """Every site with as many records, every two of them sharing masks; several outputs are softmax."""
    missing = [f"--{name}" for name in _NEEDED if given[name] is None]
    if missing:
        raise typer.BadParameter(f"--method masked needs {', '.join(missing)} too.")
    alien = [f"--{name.replace('_', '-')}" for name in _ALIEN if given[name] is not None]
    if alien:
        raise typer.BadParameter(
            f"{alien[0]} does not go with --method masked: its noise follows from --epsilon."
        )
    with usage_errors():
        from ..graph import Graph
        from ..planning.masked_plan import plan_masked

        graph = Graph.complete(given["sites"])
        return plan_masked(
            epsilon=given["epsilon"],
            delta=given["delta"],
            samples=[given["samples"]] * graph.n,
            graph=graph,
            dimension=given["dimension"],
            colluding=given["colluding"],
            loss=LossName(given["loss"]).make(),
            outputs=given["outputs"],
            rounds=given["rounds"],
            regularization=given["regularization"],
        ).certificate
