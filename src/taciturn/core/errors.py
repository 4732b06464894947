"""Everything that `taciturn` raises or warns about.

    TaciturnError
    ├── ParameterError (ValueError)     a parameter is invalid; the message has its value and the fix
    │   ├── GraphError                  not a connected simple graph
    │   └── DataError                   the features or labels cannot be used as they are
    ├── NotConverged                    the solver missed its tolerance; the round is charged, nothing is sent
    ├── OutOfReach                      received values are too large for floats; the round was not started
    ├── BudgetExceeded                  the charge would exceed a budget; nothing was released
    ├── LedgerError                     the file of all charges was altered, or another process uses it
    ├── CertificateError                a certificate's numbers do not follow from its facts
    ├── DataUnavailable                 a public data set was not found; the message lists what was tried
    ├── MissingExtra (ImportError)      a dependency is missing; the message has the install command
    ├── SiteError                       a real site cannot continue; its state is kept
    │   ├── WrongFiles                  job.toml, site.toml, a key or the file of rows is invalid
    │   ├── NeighbourFailed             another site is silent or dishonest; try again later
    │   ├── RunOver                     the solver failed, or the run was ended without a model
    │   ├── StateLost                   the site's state was lost, rolled back or copied; see --newest-state
    │   └── Contradiction               a site signed two contradicting messages; the run is over for all
    ├── Stopped                         Ctrl-C in the middle of a run; the message states the cost so far
    └── WorkerLost                      a worker of a cluster is gone; a run with a checkpoint can resume

    TaciturnWarning (UserWarning)
    ├── PrivacyLeakWarning              a bound was computed from the data; no certificate covers this
    ├── BudgetTooSmallWarning           at this budget the noise is larger than the signal
    ├── ClippedRowsWarning              many rows exceed the norm `data_norm`; private fits never warn of this
    └── EmptyRowsWarning                many rows were replaced by zeros; private fits never warn of this

Messages quote parameters, never data: a message that quotes data would publish them. Each message is
one line; `DataUnavailable` adds a line for every place that was tried. Line breaks and control characters in
text from a file or a neighbour are escaped. The exit codes are in `ExitCode`.
"""

from enum import IntEnum

_LONGEST = 2000


class ExitCode(IntEnum):
    """The exit codes. After an exit code in `NOT_AGAIN`, it does not help to run the same command again."""

    DONE = 0
    """The command finished, or SIGTERM stopped a site. The same command continues a stopped site's run."""
    FAILED = 1
    """A failure without an exit code of its own, such as a full disk; the error line names the failure."""
    USAGE = 2
    """The command line is invalid: for example, the command or an option does not exist."""
    STATE_LOST = 3
    CONTRADICTION = 4
    BUDGET_SPENT = 5
    """The next release would exceed the budget, so it was not made."""
    WRONG_FILES = 6
    NEIGHBOUR = 7
    """Another site was silent for too long, or has a different job."""
    RUN_OVER = 8
    """The run has ended: the solver failed, or the run was ended without a model."""
    INTERRUPTED = 130
    """Ctrl-C stopped the command. If the run kept a state or a checkpoint, the same command continues it."""


NOT_AGAIN = (
    ExitCode.USAGE,
    ExitCode.STATE_LOST,
    ExitCode.CONTRADICTION,
    ExitCode.BUDGET_SPENT,
    ExitCode.WRONG_FILES,
    ExitCode.RUN_OVER,
)


def one_line(text: object) -> str:
    """An untrusted text as one line that is safe to print; the middle of a very long text is left out.

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
    """The base class of all errors of taciturn. After the error, a command ends with the code `exit_code`."""

    exit_code = ExitCode.FAILED

    def __str__(self) -> str:
        return one_line(super().__str__())


class ParameterError(TaciturnError, ValueError):
    """A parameter is invalid, for example out of its range."""


class GraphError(ParameterError):
    """The network is not a connected simple graph."""


class DataError(ParameterError):
    """The features or labels cannot be used as they are."""


class NotConverged(TaciturnError):  # noqa: N818 - reads as a statement, like StopIteration
    """The solver did not reach its tolerance; no result was sent. In a real run the round stays charged."""

    exit_code = ExitCode.RUN_OVER


class OutOfReach(TaciturnError):  # noqa: N818
    """Received values are so large that the solver could fail; the round was not started or charged."""

    exit_code = ExitCode.RUN_OVER


class BudgetExceeded(TaciturnError):  # noqa: N818
    """The charge would exceed the budget; nothing was released."""

    exit_code = ExitCode.BUDGET_SPENT


class LedgerError(TaciturnError):
    """The ledger (the file of all privacy charges) was altered, or another process uses it."""


class CertificateError(TaciturnError):
    """A certificate's numbers do not follow from its facts."""


class DataUnavailable(TaciturnError):  # noqa: N818
    """A public data set was not found. The message has a line for every place that was tried."""

    def __str__(self) -> str:
        return "\n".join(one_line(line) for line in Exception.__str__(self).split("\n"))


class MissingExtra(TaciturnError, ImportError):  # noqa: N818
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"`{package}` is not installed; run: pip install 'taciturn[{extra}]'")


class SiteError(TaciturnError):
    """A real site cannot continue; its state is kept. The subclass says whether the run can resume."""


class WrongFiles(SiteError, ParameterError):  # noqa: N818
    """A file of the site is invalid; the site cannot run until its owner has corrected the file."""

    exit_code = ExitCode.WRONG_FILES


class NeighbourFailed(SiteError):  # noqa: N818
    """Another site is silent, or sent a message that no honest site sends."""

    exit_code = ExitCode.NEIGHBOUR


class RunOver(SiteError):  # noqa: N818
    """The run has ended: the solver failed in a charged round, or the run was ended without a model."""

    exit_code = ExitCode.RUN_OVER


class StateLost(SiteError):  # noqa: N818
    """The state of a site was lost, restored from a backup or copied; nothing more is released."""

    exit_code = ExitCode.STATE_LOST


class Contradiction(SiteError):  # noqa: N818
    """A site signed two messages that contradict each other; the run is over for all sites."""

    exit_code = ExitCode.CONTRADICTION


class Stopped(TaciturnError):  # noqa: N818
    """Ctrl-C in the middle of a run; the message states the cost so far."""

    exit_code = ExitCode.INTERRUPTED


class WorkerLost(TaciturnError):  # noqa: N818
    """A worker of the cluster is gone, could not be started, or has different package versions."""


class TaciturnWarning(UserWarning):
    """The base class of all warnings of taciturn."""


class PrivacyLeakWarning(TaciturnWarning):
    """A bound was computed from the data, so it reveals something about them. No certificate covers this."""


class BudgetTooSmallWarning(TaciturnWarning):
    """At this budget the noise is larger than the signal. This is decided from public numbers only."""


class ClippedRowsWarning(TaciturnWarning):
    """Many rows have a norm above `data_norm`. Private fits never warn of this: it would be a release."""


class EmptyRowsWarning(TaciturnWarning):
    """Many rows were replaced by zeros, so a model learns little. Private fits never give this warning."""
