"""`taciturn certify`: compute the privacy cost of a run with given settings, and write its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..core import checks
from .app import app
from .options import AsJson, LossName, make_loss, usage_errors
from .verify import Card, Out, Registry, report, verify

if TYPE_CHECKING:
    from ..methods.admm.perturbations import Method
    from ..privacy.certificate.certificate import Certificate
    from ..privacy.noise import GaussianNoise, NormNoise
    from ..schedules import Schedule

_WRITTEN = ("file", "out", "registry", "card", "as_json")


@app.command("certify")
def certify(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An existing certificate. The command then verifies it, as `taciturn verify` does, and "
            "computes nothing from settings. The only setting that you may then give is --delta."
        ),
    ] = None,
    method: Annotated[
        Literal["penalty", "dual", "primal", "masked"] | None,
        typer.Option(
            help="Where the sites add noise. penalty (the default), dual and primal add it in the steps of "
            "ADMM. masked adds it to sums over all sites; random masks hide what each site adds to a sum."
        ),
    ] = None,
    noise: Annotated[
        Literal["norm", "gaussian", "none"] | None,
        typer.Option(help="The noise: norm (density exp(-rate * norm)), gaussian, or none."),
    ] = None,
    C: Annotated[float | None, typer.Option("--C", help="The weight of the loss.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="The number of records at the site. For --method masked: at each site.")
    ] = None,
    degree: Annotated[
        int | None, typer.Option(help="With how many other sites a site exchanges messages.")
    ] = None,
    penalty: Annotated[float | None, typer.Option(help="The penalty eta of ADMM in round 1.")] = None,
    penalty_ratio: Annotated[
        float | None, typer.Option(help="The factor by which eta grows in each round.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="The rate alpha of norm noise in round 1. A larger rate means less noise."),
    ] = None,
    rate_ratio: Annotated[
        float | None, typer.Option(help="The factor by which alpha grows in each round.")
    ] = None,
    std: Annotated[
        float | None, typer.Option(help="The standard deviation sigma of Gaussian noise in round 1.")
    ] = None,
    std_ratio: Annotated[
        float | None, typer.Option(help="The factor by which sigma grows in each round.")
    ] = None,
    dimension: Annotated[int | None, typer.Option(help="The number of coefficients.")] = None,
    rounds: Annotated[int | None, typer.Option(help="The number of rounds.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="The delta of the certificate; 1e-5 by default.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="For --method masked: the budget epsilon, which determines the noise."),
    ] = None,
    colluding: Annotated[
        int | None,
        typer.Option(min=0, help="For --method masked: how many other sites may work with an attacker."),
    ] = None,
    dual_step: Annotated[
        float | None, typer.Option(help="The dual step theta of ADMM; the value of --penalty by default.")
    ] = None,
    loss: Annotated[LossName | None, typer.Option(help="The loss; logistic by default.")] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            help="The weight of the regulariser. By default it is 0; with --method masked, the command "
            "chooses it by default."
        ),
    ] = None,
    sites: Annotated[
        int | None, typer.Option(help="The number of sites; the value of --degree plus 1 by default.")
    ] = None,
    outputs: Annotated[
        int | None,
        typer.Option(help="How many models are trained at once: K for one-vs-rest with K classes."),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            help="The largest distance of the solver's result from the exact minimiser; 0 by default."
        ),
    ] = None,
    output_rate: Annotated[
        float | None,
        typer.Option(
            help="Add norm noise of this rate to each result before it is sent, to hide the solver's error."
        ),
    ] = None,
    output_std: Annotated[
        float | None,
        typer.Option(help="Like --output-rate, but with Gaussian noise of this standard deviation."),
    ] = None,
    out: Out = None,
    registry: Registry = None,
    card: Card = None,
    as_json: AsJson = False,
) -> None:
    """Compute the privacy cost of a run from its settings.

    The command starts no run. To check an existing run, use `taciturn verify`.

    `--method masked` needs --sites, --samples (of each site), --dimension, --epsilon and --colluding. The
    other methods need --noise, --C, --samples, --degree, --penalty, --dimension and --rounds. Norm noise also
    needs --rate, and Gaussian noise needs --std.

    The command prints rounded numbers; the certificate that --out writes has all digits.
    """
    given = {name: context.params[name] for name in context.params if name not in _WRITTEN}
    given = {name: value for name, value in given.items() if value is not None}
    written: dict[str, Any] = {"out": out, "registry": registry, "card": card, "as_json": as_json}
    if file is None:
        _check(given)
        with usage_errors():
            certificate = _MAKERS.get(given.get("method", ""), _perturbed)(given)
        report(certificate, None, **written)
        return
    if settings := [name for name in given if name != "delta"]:
        raise typer.BadParameter(
            f"the file already contains the settings of its run; leave out {_option(settings[0])}."
        )
    verify(file, delta=delta, **written)
    if not as_json:
        typer.echo("Note: `taciturn verify` is the command that checks files.")


# -- which options go together ----------------------------------------------------------------------

_ALWAYS = ("samples", "sites", "dimension", "rounds", "C", "regularization", "loss", "outputs", "delta")
_NEEDED = {
    "penalty": ("noise", "C", "samples", "degree", "penalty", "dimension", "rounds"),
    "masked": ("sites", "samples", "dimension", "epsilon", "colluding"),
}
_OPTIONAL = {
    "penalty": (*_ALWAYS, "penalty_ratio", "dual_step", "tol"),
    "primal": (*_ALWAYS, "penalty_ratio", "dual_step", "tol"),
    "dual": (*_ALWAYS, "tol"),
    "masked": _ALWAYS,
}
_BY_NOISE = {
    "norm": ("rate", "rate_ratio", "output_rate", "output_std"),
    "gaussian": ("std", "std_ratio", "output_rate", "output_std"),
    "none": (),
}
_REASONS = {
    "dual": "dual perturbation has one constant penalty, which is also the dual step",
    "masked": "a masked run does not use ADMM, and its noise follows from --epsilon",
    "none": "this option needs --noise norm or gaussian",
}
_ONLY_MASKED = ("epsilon", "colluding")


def _check(given: dict[str, Any]) -> None:
    """Raise an error if an option that the method needs is missing, or if a given option has no effect."""
    method, noise = given.get("method", "penalty"), given.get("noise", "")
    needed = _NEEDED.get(method, _NEEDED["penalty"])
    noises = _BY_NOISE if "noise" in needed else {}
    scale = noises.get(noise, ())
    known = {*needed, *_OPTIONAL[method], *scale, *(() if noise == "none" else ("method",))}
    for name in [name for name in given if name not in known]:
        if name in _ONLY_MASKED:
            raise typer.BadParameter(f"{_option(name)} needs --method masked.")
        noisy = bool(noises) and (name == "method" or any(name in names for names in noises.values()))
        if noisy and not noise:
            break  # --noise is missing, which is reported below
        place, reason = (f"--noise {noise}", noise) if noisy else (f"--method {method}", method)
        told = f": {_REASONS[reason]}" if reason in _REASONS else ""
        raise typer.BadParameter(f"{_option(name)} has no effect with {place}{told}.")
    missing = [_option(name) for name in (*needed, *scale[:1]) if name not in given]
    if missing:
        raise typer.BadParameter(f"missing options: {', '.join(missing)}.")
    if "output_rate" in given and "output_std" in given:
        raise typer.BadParameter("--output-rate and --output-std exclude each other.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# -- settings -> certificate ------------------------------------------------------------------------


def _masked(given: dict[str, Any]) -> Certificate:
    """The certificate of a masked run with sites of equal size and masks between all pairs of sites."""
    from ..graph import Graph
    from ..planning.plan import plan

    same = ("epsilon", "samples", "dimension", "colluding", "outputs", "rounds", "C", "regularization")
    settings = {name: given[name] for name in same if name in given}
    graph, delta = Graph.complete(given["sites"]), given.get("delta", 1e-5)
    loss = make_loss(given.get("loss"))
    return plan(**settings, delta=delta, graph=graph, loss=loss, large_delta=True).certificate


_MAKERS = {"masked": _masked}


def _perturbed(given: dict[str, Any]) -> Certificate:
    """The certificate of one site of an ADMM run. Its cost does not depend on the other sites' schedules."""
    from ..methods.admm.prepared import PreparedADMM
    from ..methods.base import Network
    from ..privacy.marks import PLANNED

    public = Network.without_rows(
        [given["samples"]],
        [given["degree"]],
        total=given.get("sites", max(given["degree"] + 1, 2)),
        dimension=given["dimension"],
        loss=make_loss(given.get("loss")),
        C=given["C"],
        regularization=given.get("regularization", 0.0),
    )
    prepared = PreparedADMM(
        public, _method(given).tables(1, given["rounds"]), given.get("tol", 0.0), "planned"
    )
    run = prepared.run_facts(simulated=True, outputs=given.get("outputs", 1), marks=(PLANNED,))
    return prepared.forecast(run, given.get("delta", 1e-5))


def _method(given: dict[str, Any]) -> Method:
    from ..methods.admm.perturbations import METHODS

    noise, output = _noise(given, "rate", "std"), _noise(given, "output_rate", "output_std")
    kind = METHODS["madmm" if noise is None else given.get("method", "penalty")]
    settings = {
        "penalty": given["penalty"] if kind.constant else _schedule(given, "penalty"),
        "dual_step": given.get("dual_step", given["penalty"]),
        "noise": noise,
        "output_noise": output,
    }
    made: Method = kind(**{name: settings[name] for name in kind.settings() if name in settings})
    return made


def _noise(given: dict[str, Any], rate: str, std: str) -> NormNoise | GaussianNoise | None:
    """The noise with the given rate or standard deviation; None if neither option is given."""
    from ..privacy.noise import GaussianNoise, NormNoise

    if rate in given:
        return NormNoise(_schedule(given, rate))
    return GaussianNoise(_schedule(given, std)) if std in given else None


def _schedule(given: dict[str, Any], name: str) -> Schedule:
    from ..schedules import Geometric

    start = checks.positive(name, given[name])
    return Geometric(start, checks.positive(f"{name}_ratio", given.get(f"{name}_ratio", 1.0)))
