"""`taciturn verify`: recompute the numbers of a certificate, and check that the files of a run agree.

A certificate states the facts of a run, and the privacy cost that follows from these facts. A ledger is the
file in which a run records the cost of each round before the round starts. The paper is [ZKL18].
"""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import ParameterError
from ..core.files import check_folder, write_whole
from .app import app
from .options import AsJson, say, show_table

if TYPE_CHECKING:
    from ..privacy.certificate.certificate import Certificate

_SIGNED = ("proof", "statement", "stopped")  # the names of signed files begin with these words

Out = Annotated[Path | None, typer.Option(help="Write the certificate to this file.")]
Registry = Annotated[
    Path | None,
    typer.Option(
        help="Write a YAML entry to this file, for a public registry of differential-privacy deployments."
    ),
]
Card = Annotated[Path | None, typer.Option(help="Write a model card to this file, in Markdown.")]


@app.command("verify")
def verify(
    file: Annotated[
        Path,
        typer.Argument(help="A certificate, a ledger, the folder of a run, or a site's statement or proof."),
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            help="For a ledger: the delta of the computed certificate; by default the delta of the budget "
            "in the ledger, or 1e-5 if the ledger has no budget."
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(
            help="For a signed file: the X.509 certificate of the authority that signed the sites' keys."
        ),
    ] = None,
    out: Out = None,
    registry: Registry = None,
    card: Card = None,
    as_json: AsJson = False,
) -> None:
    """Verify a certificate, a ledger or the folder of a run.

    For a certificate, the command recomputes every number from the facts that the certificate states. For a
    ledger (the file that records the cost of each round), it computes the certificate, even if the run was
    interrupted. In the folder of a run, it checks that the model, the certificate and the ledger agree with
    each other, and with the values that the sites released last. If the run answered questions instead of
    training a model, the file result.json contains the released sums, and the answers computed from them. The
    command then checks that the certificate belongs to these sums. It does not compute the answers again.

    Sites sign two kinds of files: statements (of what a run cost) and proofs (that a site contradicted
    itself). To verify one of them, also give --authority.

    The command prints rounded numbers; the certificate that --out writes has all digits.
    """
    if file.name.startswith(_SIGNED) and file.suffix == ".json":
        given = {"delta": delta, "out": out, "registry": registry, "card": card, "json": as_json or None}
        _verify_signed(file, authority, given)
        return
    if authority is not None:
        raise typer.BadParameter("--authority is only for files that a site signed: a statement or a proof.")
    certificate, found = _read(file, delta)
    report(certificate, file, out=out, registry=registry, card=card, as_json=as_json)
    if not as_json:
        for line in found:
            typer.echo(f"ok  {line}")


def _verify_signed(file: Path, authority: Path | None, given: dict[str, Any]) -> None:
    from .sites.keys import verify as verify_signed

    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"--{name} has no effect on a signed file; leave out this option.")
    if authority is None:
        raise typer.BadParameter(
            f"{file.name} is signed by a site: give --authority, the certificate of the network's authority."
        )
    proof = file.name.startswith("proof")
    verify_signed(authority, None if proof else file, file if proof else None)


def _read(file: Path, delta: float | None) -> tuple[Certificate, list[str]]:
    """(certificate, lines). For the folder of a run, `lines` has a line for each check that passed."""
    from ..core.errors import CertificateError
    from ..jobs.verify_run import verify_run
    from ..privacy.certificate.certificate import Certificate

    if file.is_file() and _is_ledger(file):
        return _certify_ledger(file, delta), []
    if delta is not None:
        raise typer.BadParameter("--delta is only for a ledger: a certificate states its own delta.")
    if file.is_dir():
        return verify_run(file)
    try:
        certificate = Certificate.from_json(file.read_text(encoding="utf-8-sig"))
        certificate.check()
    except (UnicodeDecodeError, ParameterError) as error:
        raise CertificateError(f"{file.name} is not a certificate: {error}") from error
    return certificate, []


def _certify_ledger(file: Path, delta: float | None) -> Certificate:
    """The certificate of a ledger at `delta`. None means the largest delta of its budgets, or else 1e-5."""
    from ..privacy.certificate.certificate import Certificate
    from ..privacy.ledger.disk import SqliteLedger
    from ..sites.rounds.store import is_site_file, read_ledger

    site = is_site_file(file)
    with nullcontext(read_ledger(file)) if site else SqliteLedger(file, readonly=True) as ledger:
        own = [budget.delta for budget in ledger.budgets if budget is not None]
        return Certificate.from_ledger(ledger, delta=delta if delta is not None else max(own, default=1e-5))


def _is_ledger(file: Path) -> bool:
    with file.open("rb") as start:
        return start.read(16) == b"SQLite format 3\x00"


# -- printing ---------------------------------------------------------------------------------------


def report(
    certificate: Certificate,
    file: Path | None,
    *,
    out: Path | None,
    registry: Path | None,
    card: Path | None,
    as_json: bool,
) -> None:
    """Write the requested files and print the costs. `file` is the file that was verified, or None."""
    wanted = {"--out": out, "--registry": registry, "--card": card}
    for option, path in wanted.items():
        check_folder(option, path)
    texts = {"--out": certificate.to_json(), **_documents(certificate, file, registry, card)}
    for option, path in wanted.items():
        if path is not None:
            write_whole(path, texts[option])
            if option != "--out":
                typer.echo(f"wrote {path}", err=True)
    if as_json:
        typer.echo(json.dumps(_figures(certificate)))
    else:
        _show(certificate, verified=file is not None)


def rounded(value: float) -> float | None:
    """A finite cost, rounded up as in all texts; None if the cost is infinite."""
    from ..core.formatting import format_cost

    return float(format_cost(value)) if math.isfinite(value) else None


def _figures(certificate: Certificate) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "paper": rounded(certificate.paper_epsilon),
        "pure": rounded(certificate.pure_epsilon),
        "epsilon": rounded(certificate.epsilon),
        "delta": certificate.delta,
    }
    if figures["paper"] is not None and not _theorem_applies(certificate):
        figures["paper_condition"] = False
    if certificate.against:
        figures |= {"colluding": certificate.run.colluding, "mu": certificate.mu}
        figures["epsilon_against"] = [rounded(epsilon) for epsilon in certificate.against]
    return figures


def _theorem_applies(certificate: Certificate) -> bool:
    return all(cost.paper_condition for cost in certificate.costs)


def _show(certificate: Certificate, *, verified: bool) -> None:
    columns = ("bound", "epsilon", "delta")
    show_table("Worst site, all rounds", _lines(certificate), columns, left=("bound",))
    if not certificate.against and not _theorem_applies(certificate):
        say("Theorem 3 of the paper does not apply to this run. The certificate states the conditions.")
    say(certificate.statement())
    if verified:
        say("Verified: every number follows from the facts in the file.")
        for note in certificate.notes:
            say(f"{note} The statement above is in the words of this version of taciturn.")


def _lines(certificate: Certificate) -> list[tuple[str, str, str]]:
    """(bound, epsilon, delta) for each line of the table."""
    from ..core.formatting import format_cost, format_delta
    from ..privacy.certificate.masked_words import lines

    delta, others = format_delta(certificate.delta), certificate.run.sites - 1
    names = {0: "no site colludes", others: "all other sites collude: masks do not help"}
    rows = [
        (names.get(c, f"{c} of {others} other sites collude"), certificate.epsilon_against(c), delta)
        for c in (lines(certificate) if certificate.against else ())
    ] or [
        ("the paper's Theorem 3", certificate.paper_epsilon, "0"),
        ("tight pure bound", certificate.pure_epsilon, "0"),
        ("best of pure and Renyi", certificate.epsilon, delta),
    ]
    return [
        (name, format_cost(epsilon) if math.isfinite(epsilon) else "none", at) for name, epsilon, at in rows
    ]


def _documents(
    certificate: Certificate, file: Path | None, registry: Path | None, card: Path | None
) -> dict[str, str]:
    """The text of each requested document. Label and columns come from model.json if it is beside `file`."""
    if registry is None and card is None:
        return {}
    from ..report.card import model_card
    from ..report.registry import registry_entry

    about: dict[str, Any] = {}
    folder = file if file is None or file.is_dir() else file.parent
    if folder is not None and (folder / "model.json").is_file():
        from ..estimators.model_file import read_model

        model = read_model(folder / "model.json")
        about = {"features": list(model.columns), "name": model.run.get("job", "")}
        if model.label is not None:
            about["learnt"] = f"{model.label}, by {model.loss} loss"
    texts = {}
    if registry is not None:
        texts["--registry"] = registry_entry(certificate, about)
    if card is not None:
        texts["--card"] = model_card(certificate, about)
    return texts
