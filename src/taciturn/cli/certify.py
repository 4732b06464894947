"""`taciturn certify`: what settings cost, or whether a certificate's numbers follow from its facts."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import checks
from ..errors import ParameterError
from .app import app
from .documents import write_documents
from .options import LossName, usage_errors

if TYPE_CHECKING:
    from rich.console import Console

    from ..admm.methods import Method
    from ..privacy.certificate.certificate import Certificate
    from ..privacy.facts import SiteBudget
    from ..privacy.noise import GaussianNoise, NormNoise
    from ..schedules import Schedule


class NoiseKind(enum.StrEnum):
    """Kinds of noise."""

    norm = "norm"
    gaussian = "gaussian"
    none = "none"


class NoisePlace(enum.StrEnum):
    """Where the noise goes."""

    penalty = "penalty"
    dual = "dual"
    primal = "primal"
    masked = "masked"


@app.command("certify")
def certify(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A certificate to verify, a ledger to certify, or the folder of a run to check as a whole."
        ),
    ] = None,
    noise: Annotated[NoiseKind | None, typer.Option(help="Kind of noise.")] = None,
    C: Annotated[float | None, typer.Option("--C", help="Weight of the loss.")] = None,
    samples: Annotated[int | None, typer.Option(help="Records of the site.")] = None,
    degree: Annotated[int | None, typer.Option(help="Neighbours of the site.")] = None,
    penalty: Annotated[float | None, typer.Option(help="eta in round 1.")] = None,
    penalty_ratio: Annotated[float, typer.Option(help="eta grows by this factor in each round.")] = 1.0,
    rate: Annotated[float | None, typer.Option(help="alpha in round 1, for norm noise.")] = None,
    rate_ratio: Annotated[float, typer.Option(help="alpha grows by this factor in each round.")] = 1.0,
    std: Annotated[float | None, typer.Option(help="sigma in round 1, for Gaussian noise.")] = None,
    std_ratio: Annotated[float, typer.Option(help="sigma grows by this factor in each round.")] = 1.0,
    dimension: Annotated[int | None, typer.Option(help="Length of the model's vector.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    delta: Annotated[float, typer.Option(help="The chance of an exception.")] = 1e-5,
    method: Annotated[NoisePlace, typer.Option(help="Where the noise goes.")] = NoisePlace.penalty,
    epsilon: Annotated[
        float | None, typer.Option(help="Masked: the budget that its noise is set for.")
    ] = None,
    colluding: Annotated[
        int | None, typer.Option(min=0, help="Masked: others that may work together.")
    ] = None,
    dual_step: Annotated[float | None, typer.Option(help="Dual step; the penalty if left out.")] = None,
    loss: Annotated[LossName, typer.Option(help="The loss.")] = LossName.logistic,
    regularization: Annotated[float, typer.Option(help="rho.")] = 0.0,
    sites: Annotated[int | None, typer.Option(help="Sites in the network; degree + 1 if left out.")] = None,
    outputs: Annotated[int, typer.Option(help="Models at once: releases per round, K for one-vs-rest.")] = 1,
    tol: Annotated[float, typer.Option(help="Distance of a solved vector from the minimiser.")] = 0.0,
    output_rate: Annotated[float | None, typer.Option(help="Rate of norm noise on the output.")] = None,
    output_std: Annotated[float | None, typer.Option(help="Std of Gaussian noise on the output.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the certificate to this file.")] = None,
    registry: Annotated[
        Path | None, typer.Option(help="Write an entry for the public registry of deployments, in YAML.")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="Write a model card, in Markdown.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a run with these settings costs, or verify the certificate in FILE.

    Masked runs take --sites, --samples (of each), --dimension, --epsilon, --colluding, perhaps --rounds.

    FILE may be the ledger of a run too, say of one that was cut off: then this is what is charged in it. Of
    the folder of a run model, certificate, ledger and trace are checked against each other.

    Numbers are printed rounded; the certificate itself (--out) holds them in full.
    """
    settings = {
        name: value
        for name, value in context.params.items()
        if name not in ("file", "out", "registry", "card", "as_json")
    }
    found: list[str] = []
    if file is None:
        certificate = _from_settings(settings)
    elif file.is_dir():
        certificate, found = _read_folder(file, context)
    else:
        certificate = _read_certificate(file, context)
    write_documents(certificate, file, registry=registry, card=card)
    if out is not None:
        out.write_text(certificate.to_json(), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(_figures(certificate)))
    else:
        _show(certificate, verified=file is not None)
        for line in found:
            typer.echo(f"ok  {line}")


# -- settings -> certificate ------------------------------------------------------------------------

_NEEDED = ("noise", "C", "samples", "degree", "penalty", "dimension", "rounds")


def _from_settings(given: dict[str, Any]) -> Certificate:
    if given["method"] == "masked":
        from .certify_masked import masked_certificate

        return masked_certificate(given)
    if given["epsilon"] is not None or given["colluding"] is not None:
        raise typer.BadParameter("--epsilon and --colluding go with --method masked.")
    scale = {"norm": "rate", "gaussian": "std"}.get(str(given["noise"]))
    missing = [name for name in (*_NEEDED, *([scale] if scale else [])) if given[name] is None]
    if missing:
        options = ", ".join(f"--{name}" for name in missing)
        raise typer.BadParameter(f"give a certificate to verify, or settings; missing: {options}.")
    for name in {"rate", "std"} - {scale}:
        if given[name] is not None:
            raise typer.BadParameter(f"--{name} does not go with --noise {given['noise']}.")
    if given["output_rate"] is not None and given["output_std"] is not None:
        raise typer.BadParameter("--output-rate and --output-std exclude each other.")
    if scale is None and (given["output_rate"] is not None or given["output_std"] is not None):
        raise typer.BadParameter("--output-rate and --output-std need --noise norm or gaussian.")
    if given["method"] == "dual" and (
        given["penalty_ratio"] != 1 or given["dual_step"] not in (None, given["penalty"])
    ):
        raise typer.BadParameter("dual perturbation has one constant penalty, which is its dual step too.")
    with usage_errors():
        return _certificate(given)


def _certificate(given: dict[str, Any]) -> Certificate:
    from ..admm.accounts import planned_certificate, run_facts
    from ..privacy.facts import PLANNED

    tables = _method(given).tables(1, given["rounds"])  # the others' schedules cost it nothing
    run = run_facts(
        tables,
        LossName(given["loss"]).make(),
        dimension=given["dimension"],
        C=given["C"],
        regularization=given["regularization"],
        tol=given["tol"],
        simulated=True,
        sites=given["sites"] or max(given["degree"] + 1, 2),
        outputs=given["outputs"],
        marks=(PLANNED,),
    )
    return planned_certificate(
        tables, run, samples=[given["samples"]], degrees=[given["degree"]], delta=given["delta"]
    )


def _method(given: dict[str, Any]) -> Method:
    """The method that the options describe."""
    from ..admm.methods import (
        MADMM,
        DualPerturbation,
        PenaltyPerturbation,
        PrimalPerturbation,
    )

    eta = _schedule(given, "penalty")
    theta = given["penalty"] if given["dual_step"] is None else given["dual_step"]
    noise, output = _noise(given, "rate", "std"), _noise(given, "output_rate", "output_std")
    if noise is None:
        return MADMM(eta, theta)
    match given["method"]:
        case "dual":
            return DualPerturbation(given["penalty"], noise, output_noise=output)
        case "primal":
            return PrimalPerturbation(eta, noise, theta, output_noise=output)
    return PenaltyPerturbation(eta, theta, noise, output_noise=output)


def _noise(given: dict[str, Any], rate: str, std: str) -> NormNoise | GaussianNoise | None:
    """The noise whose rate or standard deviation was given; at most one of the two was."""
    from ..privacy.noise import GaussianNoise, NormNoise

    if given[rate] is not None:
        return NormNoise(_schedule(given, rate))
    return None if given[std] is None else GaussianNoise(_schedule(given, std))


def _schedule(given: dict[str, Any], name: str) -> Schedule:
    from ..schedules import Geometric

    start = checks.positive(name, given[name])
    return Geometric(start, checks.positive(f"{name}_ratio", given.get(f"{name}_ratio", 1.0)))


# -- a file -----------------------------------------------------------------------------------------


def _read_folder(folder: Path, context: typer.Context) -> tuple[Certificate, list[str]]:
    from ..jobs.verify_run import verify_run

    _refuse_settings(context)
    return verify_run(folder)


def _refuse_settings(context: typer.Context) -> None:
    given = [
        name for name in (*_NEEDED, "rate", "std", "epsilon", "colluding") if context.params[name] is not None
    ]
    if given:
        raise typer.BadParameter(f"a certificate brings its own facts; leave out --{given[0]}.")


def _read_certificate(file: Path, context: typer.Context) -> Certificate:
    from ..errors import CertificateError
    from ..privacy.certificate.certificate import Certificate

    _refuse_settings(context)
    if _is_ledger(file):
        from ..privacy.ledger.disk import SqliteLedger

        with SqliteLedger(file, readonly=True) as ledger:
            return Certificate.from_ledger(ledger, delta=_delta(ledger.budgets, context))
    try:
        certificate = Certificate.from_json(file.read_text(encoding="utf-8-sig"))
        certificate.verify()
    except (UnicodeDecodeError, ParameterError) as error:
        raise CertificateError(f"{file.name} is not a certificate: {error}") from error
    return certificate


def _delta(budgets: Sequence[SiteBudget | None], context: typer.Context) -> float:
    """As the command line says; else as the run itself, if its sites have a budget."""
    own = [budget.delta for budget in budgets if budget is not None]
    given = context.get_parameter_source("delta")
    asked = given is not None and given.name != "DEFAULT"
    return float(context.params["delta"]) if asked or not own else max(own)


def _is_ledger(file: Path) -> bool:
    with file.open("rb") as start:
        return start.read(16) == b"SQLite format 3\x00"


# -- printing ---------------------------------------------------------------------------------------


def rounded(value: float) -> float | None:
    """Two decimals, or three digits where that is finer, never below the truth; None for infinity.

    >>> rounded(64.8219), rounded(0.0012345), rounded(58.05), rounded(float("inf"))
    (64.83, 0.00124, 58.05, None)
    """
    if not math.isfinite(value) or value == 0:
        return None if value else 0.0
    digits = min(max(2, 2 - math.floor(math.log10(value))), 300)
    return float(f"{math.ceil(value * 10.0**digits * (1 - 1e-15)) / 10.0**digits:.{digits}f}")


def _figures(certificate: Certificate) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "paper": rounded(certificate.paper_epsilon),
        "pure": rounded(certificate.pure_epsilon),
        "epsilon": rounded(certificate.epsilon),
        "delta": certificate.delta,
    }
    if figures["paper"] is not None and not all(cost.paper_condition for cost in certificate.costs):
        figures["paper_condition"] = False
    if certificate.run.masked:
        from ..privacy.accounting.shown import rounded_up

        against = [float(rounded_up(epsilon).replace("infinite", "inf")) for epsilon in certificate.against]
        figures |= {"colluding": certificate.run.colluding, "mu": certificate.mu}
        figures["epsilon_against"] = [epsilon if math.isfinite(epsilon) else None for epsilon in against]
    return figures


def _show(certificate: Certificate, *, verified: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Worst site, all rounds")
    for column in ("bound", "epsilon", "delta"):
        table.add_column(column, justify="left" if column == "bound" else "right")
    for name, epsilon, delta in _lines(certificate):
        table.add_row(name, epsilon, delta)
    console = Console(highlight=False)
    console.print(table)
    if not certificate.run.masked and not all(cost.paper_condition for cost in certificate.costs):
        console.print("The paper's theorem does not apply here: see its conditions in the certificate.")
    console.print(certificate.statement())
    if verified:
        console.print("Verified: every number follows from the facts in the file.")
        _tell_version(console, certificate)


def _lines(certificate: Certificate) -> list[tuple[str, str, str]]:
    """(bound, epsilon, delta), one for each line of the table."""
    from ..privacy.accounting.shown import rounded_up, shown_delta

    delta = shown_delta(certificate.delta)
    if certificate.run.masked:
        from ..privacy.certificate.masked_words import lines

        others = certificate.run.sites - 1
        chosen = lines(certificate)
        names = {0: "nobody colludes", others: "all the others collude: no mask needed"}
        return [
            (
                names.get(c, f"{c} of {others} others collude"),
                rounded_up(certificate.epsilon_against(c)),
                delta,
            )
            for c in chosen
        ]
    rows = [
        ("the paper's Theorem 3", certificate.paper_epsilon, "0"),
        ("tight pure bound", certificate.pure_epsilon, "0"),
        ("best of pure and Renyi", certificate.epsilon, delta),
    ]
    values = [rounded(epsilon) for _, epsilon, _ in rows]
    return [
        (name, "none" if value is None else f"{value:g}", at)
        for (name, _, at), value in zip(rows, values, strict=True)
    ]


def _tell_version(console: Console, certificate: Certificate) -> None:
    """Another version may word things otherwise, so its own texts were not compared."""
    from ..versions import versions

    stated = certificate.run.versions.get("taciturn", "unknown")
    if stated != versions()["taciturn"]:
        console.print(
            f"The file names version {stated[:20]!r} of taciturn as its writer: the texts in it were not "
            "compared; the words above are of this version.",
            markup=False,
        )
