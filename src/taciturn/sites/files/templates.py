"""A commented pair of files to begin with; they are valid as they stand, with two example sites."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ...errors import SiteError
from .keys import write_new

JOB = """\
# job.toml: public, and the same at every site. Its hash is in every message: a site whose copy says anything
# else is refused, by name. Agree on it first; then each site writes its own site.toml.
format = "taciturn-job/1"
name = "first-run"

rounds = 20                     # T: each round is one release per site, and costs privacy
loss = "logistic"               # or { kind = "smooth-hinge", h = 0.5 }, or { kind = "log-cosh", scale = 1.0 }
C = 100.0                       # weight of the loss; at most the rows of the smallest site
regularization = 0.01           # rho
dual_step = 0.5                 # theta; or { kind = "geometric", start = 0.5, ratio = 1.02, cap = 1.0 }
delta = 1e-5                    # the chance of an exception in every site's statement

# For sums under masks, of which nobody sees a part: leave out dual_step, clip, grid and tol, and write
# method = "masked"
# epsilon = 1.0                 # the cost of the whole run ...
# colluding = 1                 # ... while at most so many of the other sites work together

clip = 64.0                     # every number that is sent lies within +-clip ...
grid = 5.820766091346741e-11    # ... and a multiple of grid: a power of 2 (2**-34), far below output noise
tol = 1e-10                     # how far a solved vector may be from the exact minimiser, before its noise

# What the rows are. Either `dimension`, for .npz files with X (rows of norm at most 1) and y (-1 or +1) ...
dimension = 10
# ... or `schema` and `label`, for .csv and .parquet files: public facts, never taken from the data.
# intercept = true
# label = { column = "income", positive = ">50K" }    # several classes, masked: classes = ["A", "B", "C"]
# person = "patient"            # whose row it is: a person's rows are covered together. Then `samples` of a
#                               # site counts its persons, and all rows of a person must be at one site
# [schema]
# fields = [
#   { name = "age", low = 0, high = 100 },
#   { name = "sex", values = ["female", "male"] },
# ]

# seed = 1                      # only for rehearsals: everybody can repeat the noise, so nothing is private;
#                               # each site must say `rehearsal = true` in its site.toml

# Who talks to whom. Every site is reached through every other.
links = [["alpha", "beta"]]

# A relay for sites that may only connect outward (leave out their endpoint); it sees released values only.
# relay = { name = "relay", endpoint = "tls/relay.example:7447" }

[[sites]]
name = "alpha"
endpoint = "tls/alpha.example:7447"
samples = 1000                  # B: the rows of this site, fixed beforehand; an invalid row becomes zeros

[[sites]]
name = "beta"
endpoint = "tls/beta.example:7447"
samples = 1000
"""

SITE = """\
# site.toml: this site's alone. Nothing in here leaves the site. Paths count from the folder of this file.
site = "{name}"
job = "job.toml"
data = "rows.npz"               # .npz, .csv or .parquet
state = "state"                 # ledger, state and outbox; never copy it back from a backup
patience = 3600.0               # seconds to wait for a silent neighbour before stopping cleanly

# A job of method "masked" fixes all of penalty, noise and output_noise: leave them out then.

# eta(t): larger means more privacy and slower convergence; at least the dual step, and never decreasing.
penalty = {{ kind = "geometric", start = 0.5, ratio = 1.04 }}

# The noise inside the penalty: {{ kind = "gaussian", std = ... }} or {{ kind = "norm", rate = ... }}.
# `taciturn site check` says what it costs; `taciturn plan` finds settings for a budget. For more rounds than
# the job's 20 let std fall as the penalty grows, or what is noise in the last rounds becomes the model:
# std = {{ kind = "geometric", start = 1.0, ratio = 0.96 }}
noise = {{ kind = "gaussian", std = 1.5 }}

# A little noise on the result: no solver is exact, and no guarantee survives that without it. With this std
# and the job's tol it costs next to nothing.
output_noise = {{ kind = "gaussian", std = 1e-5 }}

# What this site may spend, at a delta of its own (1e-5 unless it is given here), whatever the job says: the
# round whose charge would pass it is not released, and the site stops. Each job with this table is charged to
# `ledger`, whole and before its first round: one budget for all of them.
budget = {{ epsilon = 2.0, ledger = "account/budget.sqlite" }}

# colluding = 2 in `budget` refuses a masked job whose cost holds against fewer other sites working together.

# rehearsal = true              # take part in a job with a seed: everybody can repeat its noise, so nothing
#                               # is private and nothing is charged; for rows about nobody

# listen = "tls/0.0.0.0:7447"   # if not the endpoint in the job (behind NAT, for one)
# endpoints = {{ beta = "tls/10.0.0.7:7447" }}   # where to reach a neighbour, if not where the job says

# watch = "127.0.0.1:9464"      # metrics, health and a status page, for this machine alone

[keys]                          # made by: taciturn site keys site.toml
private = "{name}.key"
certificate = "{name}.pem"
authority = "authority.pem"
# revoked = ["1f3a..."]         # serial numbers of certificates that are believed no more
"""


STATE = """\
The state of one site in one run
================================

Never put this folder back from a backup, never copy it, never start it in two places, and leave it out of
backups: a round that was released once must not be drawn again. If you move it to another machine, move all
of it, with the site stopped, and delete the old one. If it is lost the run is lost: agree on a new job.

  site.sqlite       what was spent, every frame that was sent and heard, where the run stands; with its
                    -wal and -shm while the site runs, and a .lock that lets one process in
  arrivals.bin      what neighbours sent since, for a process that is killed before it commits
  network.json      what was last known of the others, for `taciturn site status`

At the end, for whoever may see them:

  model.json        the model, the same at every site
  statement.json    what the run cost, signed by this site
  certificate.json  every fact that the cost follows from, this site's own schedules included
  report.html       the same as a page

Where the run had to stop:

  stopped.json      what has really left this site, signed
  proof-*.json      two frames of one site that contradict each other; anyone can check them
  recalled-*.bin    a frame of this site that a neighbour holds and this folder does not
"""


def write_readme(state: Path) -> None:
    """README.txt in the state folder, where there is none yet."""
    with suppress(SiteError):  # a full disk is said elsewhere
        write_new(state / "README.txt", STATE.encode())


def write_templates(folder: Path, name: str) -> list[Path]:
    """job.toml and site.toml for the site `name`; files that exist are never overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path, text in ((folder / "job.toml", JOB), (folder / "site.toml", SITE.format(name=name))):
        if path.name == "job.toml" and path.exists():
            continue  # handed over by whoever wrote it first
        write_new(path, text.encode())
        written.append(path)
    return written
