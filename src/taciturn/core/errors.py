"""Everything that `taciturn` raises or warns about.

    TaciturnError
    ├── ParameterError (ValueError)     a parameter is out of its range; names it, its value and the fix
    │   ├── GraphError                  not a connected simple graph
    │   └── DataError                   the features or labels cannot be used as they are
    ├── NotConverged                    the solver missed its tolerance; nothing was sent, yet it is charged
    ├── OutOfReach                      received values are too large for floats; the round was not started
    ├── BudgetExceeded                  the charge would exceed a budget; nothing was released
    ├── LedgerError                     the ledger on disk was altered, or is held by another process
    ├── CertificateError                a certificate's numbers do not follow from its facts
    ├── DataUnavailable                 a public data set was not found; lists what was tried
    ├── MissingExtra (ImportError)      an optional dependency is not installed; gives the command
    ├── SiteError                       a real site cannot go on; state is kept and the run can resume
    │   ├── WrongFiles                  job.toml, site.toml, a key or the rows are not as they must be
    │   ├── NeighbourFailed             another site is silent or dishonest; try again later
    │   ├── RunOver                     a round was charged and lost, and nothing more is drawn
    │   ├── StateLost                   its state was lost, rolled back or copied; nothing more is released
    │   └── Contradiction               a site signed two frames that contradict each other; the run is over
    ├── Stopped                         Ctrl-C in the middle of a run; says what was spent until then
    └── WorkerLost                      a cluster's worker is gone; a run with a checkpoint can resume

    TaciturnWarning (UserWarning)
    ├── PrivacyLeakWarning              a bound was taken from the data: outside what is certified
    ├── BudgetTooSmallWarning           at this budget the noise is larger than the signal
    ├── ClippedRowsWarning              many rows are longer than `data_norm`; only where nothing is promised
    └── EmptyRowsWarning                many rows count as zeros; only where nothing is promised

Messages quote parameters, never data: an exception is a release. Each is one line (`DataUnavailable` has one
more for every place): what a file or a neighbour wrote into it is shown with its line breaks and escapes
spelt out. The exit codes are in `ExitCode`.
"""

from enum import IntEnum

_LONGEST = 2000


class ExitCode(IntEnum):
    """The exit codes; after those in `NOT_AGAIN`, running the same command again does not help."""

    DONE = 0
    """Finished; or stopped by SIGTERM, and the same command continues."""
    FAILED = 1
    """Any other failure, such as a full disk or a port in use; the error line names it."""
    USAGE = 2
    """No such command or option."""
    STATE_LOST = 3
    CONTRADICTION = 4
    BUDGET_SPENT = 5
    """The next charge would exceed the budget; nothing of it was released."""
    WRONG_FILES = 6
    NEIGHBOUR = 7
    """Another site was silent for too long, or has a different job."""
    RUN_OVER = 8
    """The solver failed: its round is charged, and the run has ended."""
    INTERRUPTED = 130
    """Ctrl-C; the same command continues."""


NOT_AGAIN = (
    ExitCode.USAGE,
    ExitCode.STATE_LOST,
    ExitCode.CONTRADICTION,
    ExitCode.BUDGET_SPENT,
    ExitCode.WRONG_FILES,
    ExitCode.RUN_OVER,
)


def one_line(text: object) -> str:
    """An untrusted text as one line that is safe to print on a terminal.

    >>> one_line("red\\x1b[31m\\nor not")
    'red\\\\x1b[31m\\\\nor not'
    """
    words = str(text)
    if len(words) > _LONGEST:
        words = f"{words[: _LONGEST // 2]} ... {words[-_LONGEST // 2 :]}"
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in words)


class TaciturnError(Exception):
    """The root of all errors raised on purpose; `exit_code` is the exit code of the command line."""

    exit_code = ExitCode.FAILED

    def __str__(self) -> str:
        return one_line(super().__str__())


class ParameterError(TaciturnError, ValueError):
    """A parameter is out of its range."""


class GraphError(ParameterError):
    """The network is not a connected simple graph."""


class DataError(ParameterError):
    """The features or labels cannot be used as they are."""


class NotConverged(TaciturnError):  # noqa: N818 - reads as a statement, like StopIteration
    """The solver missed its tolerance; nothing was sent, and a real run's round stays charged."""

    exit_code = ExitCode.RUN_OVER


class OutOfReach(TaciturnError):  # noqa: N818
    """Received values are too large for floats to certify a solve; the round was not started or charged."""

    exit_code = ExitCode.RUN_OVER


class BudgetExceeded(TaciturnError):  # noqa: N818
    """The charge would exceed the budget; nothing was released."""

    exit_code = ExitCode.BUDGET_SPENT


class LedgerError(TaciturnError):
    """The ledger on disk was altered, or is held by another process."""


class CertificateError(TaciturnError):
    """A certificate's numbers do not follow from its facts."""


class DataUnavailable(TaciturnError):  # noqa: N818
    """A public data set was not found; a line for every place that was tried."""

    def __str__(self) -> str:
        return "\n".join(one_line(line) for line in Exception.__str__(self).split("\n"))


class MissingExtra(TaciturnError, ImportError):  # noqa: N818
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"`{package}` is not installed; run: pip install 'taciturn[{extra}]'")


class SiteError(TaciturnError):
    """A real site cannot continue; its state is kept and the run can resume."""


class WrongFiles(SiteError, ParameterError):  # noqa: N818
    """A file of the site is invalid; trying again does not help until its owner has corrected it."""

    exit_code = ExitCode.WRONG_FILES


class NeighbourFailed(SiteError):  # noqa: N818
    """Another site is silent, or does what no honest site does."""

    exit_code = ExitCode.NEIGHBOUR


class RunOver(SiteError):  # noqa: N818
    """A round was charged and lost, and the run with it."""

    exit_code = ExitCode.RUN_OVER


class StateLost(SiteError):  # noqa: N818
    """The state of a site was lost, restored from a backup or copied; nothing more is released."""

    exit_code = ExitCode.STATE_LOST


class Contradiction(SiteError):  # noqa: N818
    """A site signed two frames that contradict each other; the run is over for all sites."""

    exit_code = ExitCode.CONTRADICTION


class Stopped(TaciturnError):  # noqa: N818
    """Ctrl-C in the middle of a run; the message states the cost so far."""

    exit_code = ExitCode.INTERRUPTED


class WorkerLost(TaciturnError):  # noqa: N818
    """A worker of the cluster is gone, or cannot be had."""


class TaciturnWarning(UserWarning):
    """The root of all warnings."""


class PrivacyLeakWarning(TaciturnWarning):
    """A bound was taken from the data, which no certificate covers."""


class BudgetTooSmallWarning(TaciturnWarning):
    """At this budget, by public numbers, the noise is larger than the signal; warned before it is spent."""


class ClippedRowsWarning(TaciturnWarning):
    """Many rows are longer than `data_norm`; only fits without a promise warn."""


class EmptyRowsWarning(TaciturnWarning):
    """Many rows count as zeros, so a model learns little from them; only fits without privacy warn."""
