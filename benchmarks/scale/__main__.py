"""`python -m benchmarks.scale`: measure the time and memory of large runs, and write docs/scale.md."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from .measure import measure
from .page import write_page
from .small import line


def main() -> None:
    """Parse the options, measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer sites on the cluster; only prints, unless --out is given"
    )
    parser.add_argument("--out", type=Path, help="where to write; docs/ unless --quick")
    parser.add_argument("--line", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.line:
        print(line(*options.line))
        return
    facts = measure(quick=options.quick)
    print(json.dumps(asdict(facts)))
    if options.out or not options.quick:
        command = "python -m benchmarks.scale" + " --quick" * options.quick
        print(write_page(facts, command, options.out or Path(__file__).parents[2] / "docs"))


main()
