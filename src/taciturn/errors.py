"""Everything that `taciturn` raises or warns about.

    TaciturnError
    ├── ParameterError (ValueError)     a parameter is out of its range; names it, its value and the fix
    │   ├── GraphError                  not a connected simple graph
    │   └── DataError                   the features or labels cannot be used as they are
    ├── NotConverged                    the solver missed its tolerance; nothing was sent, yet it is charged
    ├── OutOfReach                      what was heard is too large for floats; nothing was drawn
    ├── BudgetExceeded                  the charge would pass a site's budget; nothing was released
    ├── LedgerError                     the ledger on disk was altered, or is held by another process
    ├── CertificateError                a certificate's numbers do not follow from its facts
    ├── DataUnavailable                 a public data set was not found; lists what was tried
    ├── MissingExtra (ImportError)      an optional dependency is not installed; gives the command
    ├── SiteError                       a real site cannot go on; state is kept and the run can resume
    │   ├── StateLost                   its state was lost, rolled back or copied; nothing more is released
    │   └── Contradiction               a site signed two frames that contradict each other; the run is over
    └── WorkerLost                      a cluster's worker is gone; a run with a checkpoint can resume

    TaciturnWarning (UserWarning)
    ├── PrivacyLeakWarning              a bound was taken from the data: outside what is certified
    └── ClippedRowsWarning              many rows are longer than `data_norm`; only where nothing is promised

Messages quote parameters, never data: an exception is a release.
"""


class TaciturnError(Exception):
    """The root of all errors raised on purpose; `exit_code` is what the command line ends with."""

    exit_code = 1


class ParameterError(TaciturnError, ValueError):
    """A parameter is out of its range."""


class GraphError(ParameterError):
    """The network is not a connected simple graph."""


class DataError(ParameterError):
    """The features or labels cannot be used as they are."""


class NotConverged(TaciturnError):  # noqa: N818 - reads as a statement, like StopIteration
    """The solver missed its tolerance; nothing was sent, and a real run's round stays charged."""


class OutOfReach(TaciturnError):  # noqa: N818
    """What was heard is too large for floats to certify a solve; nothing was drawn."""


class BudgetExceeded(TaciturnError):  # noqa: N818
    """The charge would pass the budget; nothing was released."""


class LedgerError(TaciturnError):
    """The ledger on disk was altered, or is held by another process."""


class CertificateError(TaciturnError):
    """A certificate's numbers do not follow from its facts."""


class DataUnavailable(TaciturnError):  # noqa: N818
    """A public data set was not found."""


class MissingExtra(TaciturnError, ImportError):  # noqa: N818
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"`{package}` is not installed; run: pip install 'taciturn[{extra}]'")


class SiteError(TaciturnError):
    """A real site cannot go on; its state is kept and the run can resume."""


class StateLost(SiteError):  # noqa: N818
    """The state of a site was lost, put back from a backup or copied; nothing more is released."""

    exit_code = 3


class Contradiction(SiteError):  # noqa: N818
    """A site signed two frames that contradict each other; the run is over for everybody."""

    exit_code = 4


class WorkerLost(TaciturnError):  # noqa: N818
    """A worker of the cluster is gone, or cannot be had."""


class TaciturnWarning(UserWarning):
    """The root of all warnings."""


class PrivacyLeakWarning(TaciturnWarning):
    """A bound was taken from the data: outside what is certified."""


class ClippedRowsWarning(TaciturnWarning):
    """Many rows are longer than `data_norm`; said only where nothing is promised."""
