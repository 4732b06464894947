"""`python -m benchmarks.speed`: measure the time of a round and how it grows; write docs/performance.md."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from .contest import contest
from .scaling import FULL, QUICK, Point, measure, scaling


def main() -> None:
    """Parse the options, measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer tries; only prints")
    parser.add_argument("--cpu", action="store_true", help="measure CPU seconds, for a busy machine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs", help="where to write")
    parser.add_argument(
        "--fit", action="store_true", help="compare whitened descent with its bare passes; only prints"
    )
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(asdict(measure(Point(**json.loads(options.point)), cpu=options.cpu))))
        return
    if options.fit:
        from .fit import fit_cost

        cost = fit_cost(*((10**5, 50) if options.quick else (10**6, 50)))
        print(f"{cost.rows} x {cost.columns}: a fit {cost.seconds:.2f} s, its bare passes {cost.bare:.2f} s")
        print(f"ratio {cost.ratio:.2f}; memory on top of the rows {cost.memory:.2f} times the rows")
        return
    from .page import as_markdown, write_page

    rounds, tries = (6, 2) if options.quick else (20, 5)
    table = contest(rounds=rounds, tries=tries, cpu=options.cpu)
    for row in table.rows:
        print(
            f"{row.name:32} {row.seconds:8.4f} s  {table.ratio(row.name):7.2f} x  {row.setting}", flush=True
        )
    costs = scaling(QUICK if options.quick else FULL, tries=1 if options.quick else 2, cpu=options.cpu)
    command = "python -m benchmarks.speed" + " --quick" * options.quick + " --cpu" * options.cpu
    print(
        as_markdown(table, costs, command)
        if options.quick
        else write_page(table, costs, command, options.out)
    )


main()
