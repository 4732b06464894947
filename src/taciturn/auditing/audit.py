"""audit: a lower bound on epsilon from many runs, compared with the certified upper bound.

Every run uses the real node loop, solver and sampler. A measured epsilon above the certified epsilon proves
that the code does not match the theory. A measured epsilon below the certified epsilon only means that no
event in the audit shows a mismatch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from ..core import checks
from ..core.formatting import format_at_least, format_cost, format_delta
from ..core.progress import progress as shown
from ..objective.solver.threads import one_blas_thread
from ..privacy.accounting.gaussian import gaussian_mu
from ..privacy.certificate.certificate import Certificate
from ..privacy.ledger.memory import MemoryLedger
from ..rng import Purpose, SecureStreams, SeededStreams, Streams
from .cases import admm_cases, moments_case, whitened_penalty_case
from .counting import MeanRatio, Measurement, mean_ratio, measure, measure_mu
from .masked_audit import SumsCase, masked_case, regression_case, whitened_case
from .observer import Case

_LARGE = 700.0  # exp of a larger number overflows


class OneStream:
    """One generator for all draws on one data set of a case, with a seed or with a secret random key.

    A real site uses a fresh key for every draw. An audit makes millions of draws, and needs only
    that they are independent.
    """

    simulated: ClassVar[bool] = True

    def __init__(self, seed: int | None, number: int) -> None:
        source: Streams = SecureStreams() if seed is None else SeededStreams(seed)
        self._generator = source.generator(repeat=number, site=0, purpose="noise", t=1)

    def generator(self, *, repeat: int, site: int, purpose: Purpose, t: int) -> np.random.Generator:
        return self._generator


class WholeStream(OneStream):
    """`OneStream` for a node that releases whole numbers, as a real site does."""

    simulated: ClassVar[bool] = False


@dataclass(frozen=True)
class AuditResult:
    """The result of one case: the certified epsilon, and the lower bound on epsilon that its runs prove.

    `ratio` shows whether the computed density matches the sampler; None if the density is not exact.
    """

    case: str
    about: str
    rounds: int
    runs: int
    certified: float
    measured: Measurement
    ratio: MeanRatio | None
    mu: float | None = None  # the measured mu (as in Gaussian DP); None unless all noise is Gaussian
    certified_mu: float | None = None

    @property
    def bounds(self) -> list[tuple[str, float, float]]:
        """(name, measured, certified) for epsilon, and for mu if all noise is Gaussian."""
        found = [("epsilon", self.measured.epsilon, self.certified)]
        if self.mu is not None and self.certified_mu is not None:
            found.append(("mu", self.mu, self.certified_mu))
        return found

    @property
    def passed(self) -> bool:
        """Whether no measured bound exceeds its certified bound, and the density matches the sampler."""
        within = all(measured <= certified for _, measured, certified in self.bounds)
        return within and (self.ratio is None or self.ratio.holds)

    @property
    def looseness(self) -> float:
        """The certified mu divided by the measured mu; epsilon instead of mu if the run has no mu."""
        _, measured, certified = self.bounds[-1]
        return certified / max(measured, 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            **{name: getattr(self, name) for name in ("case", "about", "rounds", "runs", "passed")},
            "certified_epsilon": self.certified if math.isfinite(self.certified) else None,
            "measured_epsilon": self.measured.epsilon,
            "delta": self.measured.delta,
            "measured_mu": self.mu,
            "certified_mu": self.certified_mu,
            "measured": self.measured.to_dict(),
            "mean_ratio": None if self.ratio is None else asdict(self.ratio),
        }


@dataclass(frozen=True)
class AuditReport:
    """The results of all cases, with a summary: whether all passed, and a sentence."""

    results: tuple[AuditResult, ...]
    confidence: float
    simulated: bool

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(result.passed for result in self.results)

    def sentence(self) -> str:
        """The summary of all results as text."""
        runs = sum(2 * result.runs for result in self.results)
        failed = [result for result in self.results if not result.passed]
        doubt = f"{1 - self.confidence:.1g}"
        if not failed:
            nearest = max(self.results, key=lambda result: result.measured.epsilon / result.certified)
            return (
                f"In {runs:,} runs on worst-case neighbouring data no event proved an epsilon above the "
                f"certified one. The case nearest to its bound was {nearest.case!r}: the measured epsilon is "
                f"at least {format_at_least(nearest.measured.epsilon)}, the certified epsilon is "
                f"{format_cost(nearest.certified)}. (Each measured bound is wrong with probability at most "
                f"{doubt}.)"
            )
        above = [(result.case, *bound) for result in failed for bound in result.bounds if bound[1] > bound[2]]
        if not above:
            mean = math.nan if failed[0].ratio is None else failed[0].ratio.mean
            return (
                f"In case {failed[0].case!r} the computed density does not match the sampler: the mean of "
                f"p_new / p_old is {mean:.4g}, not 1. Do not trust its measured bound yet."
            )
        case, name, measured, certified = max(above, key=lambda one: (one[1] == "epsilon", one[2] - one[3]))
        return (
            f"FAILED: {case!r} leaks at least {name} = {format_at_least(measured)}, above the certified "
            f"{format_cost(certified)}. (The measured bound is wrong with probability at most {doubt}.)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "passed": self.passed,
            "sentence": self.sentence(),
            "confidence": self.confidence,
            "simulated": self.simulated,
            "cases": [result.to_dict() for result in self.results],
        }


def audit(
    cases: Sequence[Case | SumsCase] | None = None,
    *,
    runs: int = 50_000,
    confidence: float = 1 - 1e-6,
    seed: int | None = None,
    progress: bool | None = None,
) -> AuditReport:
    """Measure a lower bound on epsilon for each case and compare it with the certified epsilon.

    Parameters
    ----------
    cases : which releases to audit; by default `default_cases()`, one case for each way to make a release,
        most with settings under which the bound is nearly tight.
    runs : the number of runs on each of the two data sets of a case. One half of the runs serves to choose an
        event, the other half to count it. Some cases make four times as many runs.
    confidence : in each case, the measured bound is at most the true epsilon with at least this probability.
    seed : None draws from a secure source, as a real site does; a number makes the audit reproducible.
    progress : whether to show a progress bar; None shows it on a terminal only.

    Returns
    -------
    AuditReport
        results, passed, sentence() and to_dict().

    Examples
    --------
    >>> from taciturn.auditing.cases import norm_case
    >>> audit([norm_case()], runs=2000, seed=0).passed
    True
    """
    runs = checks.whole("runs", runs, least=100)
    confidence = checks.probability("confidence", confidence)
    chosen = default_cases() if cases is None else tuple(cases)
    results = []
    with one_blas_thread(), shown(len(chosen), "cases", show=progress) as step:
        for number, case in enumerate(chosen):
            streams = _streams(case, seed, 2 * number), _streams(case, seed, 2 * number + 1)
            results.append(audit_case(case, runs, confidence, streams))
            step()
    return AuditReport(tuple(results), confidence, simulated=seed is not None)


def _streams(case: Case | SumsCase, seed: int | None, number: int) -> Streams:
    """The random streams of a case. Without a seed, masked sums use the exact sampler of real runs."""
    if isinstance(case, SumsCase) and seed is None:
        return SecureStreams()
    whole = isinstance(case, Case) and case.integers
    return WholeStream(seed, number) if whole else OneStream(seed, number)


def default_cases() -> tuple[Case | SumsCase, ...]:
    """One case for each way in which a site makes a release. In most of them the bound is nearly tight."""
    whitened = (whitened_penalty_case(), moments_case(), whitened_case())
    return (*admm_cases(), masked_case(), *whitened, regression_case())


def audit_case(
    case: Case | SumsCase, runs: int, confidence: float, streams: tuple[Streams, Streams]
) -> AuditResult:
    """Run one case on both data sets; compute every score, and the certificate of what was charged.

    A case makes `case.more` times `runs` runs. This factor is above 1 if a run takes little time: more runs
    give a tighter lower bound.
    """
    runs *= case.more
    ledger = MemoryLedger(case.run_facts(), [case.site_facts()])
    scores, log_ratios = case.observe(runs, streams, ledger)
    certificate = Certificate.from_ledger(ledger, case.delta)
    ratio = None
    if log_ratios is not None:
        most = math.exp(min(certificate.pure_epsilon, _LARGE))
        ratio = mean_ratio(-log_ratios[0], -log_ratios[1], confidence=confidence, most=most)
    certified, gaussian = certificate.charged_epsilon, certificate.accountant == "gaussian"
    return AuditResult(
        case=case.name,
        about=case.about,
        rounds=ledger.run.rounds,
        runs=runs,
        certified=certified,
        measured=measure(scores, delta=case.delta, confidence=confidence),
        ratio=ratio,
        mu=measure_mu(scores, confidence=confidence) if gaussian else None,
        certified_mu=float(gaussian_mu(certified, case.delta)) if gaussian else None,
    )


_HEAD = (
    "| release | rounds | runs | δ | ε measured, at least | ε certified | times | μ measured, at least | "
    "μ certified | times |"
)


def markdown(report: AuditReport) -> str:
    """The report as a Markdown table, one row for each case."""
    return "\n".join([_HEAD, "|---" * 10 + "|", *(_row(result) for result in report.results)]) + "\n"


def _row(result: AuditResult) -> str:
    cells = [result.case, str(result.rounds), f"{2 * result.runs:,}", format_delta(result.measured.delta)]
    for _, low, high in result.bounds:
        cells += [format_at_least(low), format_cost(high), format_cost(high / max(low, 1e-9))]
    cells += [""] * (10 - len(cells))  # a run without mu
    return f"| {' | '.join(cells)} |"
