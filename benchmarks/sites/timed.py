"""Run one site of the benchmark: python -m benchmarks.sites.timed SITE.TOML writes times.json beside it."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import taciturn.sites.rounds.ending as ending
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.driver import run_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import write_results
from taciturn.sites.wire.zenoh_log import watch_zenoh

from .clock import Clock, start


def main() -> None:
    """Run the site and write the times of its parts."""
    path, clock = Path(sys.argv[1]), Clock()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    site = load_site(path)
    ready = make_ready(site)
    start(clock, site.job.rounds)

    def results(*args: Any, **options: Any) -> Any:
        clock.mark("results begin")
        certificate = write_results(*args, **options)
        clock.mark("results")
        return certificate

    setattr(ending, "write_results", results)  # noqa: B010
    clock.mark("begun")
    run_site(ready, watch=watch_zenoh(site))
    clock.mark("left")
    facts = {"wall": clock.wall, "cpu": clock.cpu, "marks": clock.marks, "released": clock.released}
    (path.parent / "times.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
