"""python -m tools.mutants [--sample N] [--seed S] [--only ROOM ...]: find faults that no test detects.

The command plants faults and lists the survivors, with their reasons from tools/mutants/survivors.toml. The
exit code is 1 if a survivor has no reason. `--page` only writes the known survivors to docs/mutants.md.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections import Counter

from .known import PAGE, Survivor, known, page
from .operators import Mutant, is_python, mutants
from .run import Outcome, workshop
from .targets import ROOMS, ROOT, SOURCE, sources


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=80, help="how many faults to plant; 0 for all of them")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the sample")
    parser.add_argument("--only", nargs="+", default=list(ROOMS), help="folders or files below src/taciturn")
    parser.add_argument("--page", action="store_true", help="write the known survivors into docs/mutants.md")
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    chosen = choose(given.only, given.sample, given.seed)
    outcomes = []
    with workshop() as shop:
        for number, mutant in enumerate(chosen, 1):
            outcomes.append(shop.judge(mutant))
            last = outcomes[-1]
            print(f"[{number}/{len(chosen)}] {last.fate:8} {last.seconds:5.0f} s  {mutant.name}", flush=True)
    return report(outcomes)


def choose(only: list[str], sample: int, seed: int) -> list[Mutant]:
    """A sample of all faults in these files. Every fault is equally likely."""
    texts = {
        name: (ROOT / SOURCE / name).read_text(encoding="utf-8")
        for name in sources()
        if any(name == place or name.startswith(place.rstrip("/") + "/") for place in only)
    }
    everything = [mutant for name, text in texts.items() for mutant in mutants(name, text)]
    if not everything:
        raise SystemExit(f"--only: no file of {', '.join(ROOMS)} matches {' '.join(only)}.")
    print(f"{len(everything)} faults can be planted in {len(texts)} files.", flush=True)
    random.Random(seed).shuffle(everything)
    sound = (one for one in everything if is_python(one.planted(texts[one.path])))
    chosen = itertools.islice(sound, sample or None)
    return sorted(chosen, key=lambda one: (one.path, one.start))


def report(outcomes: list[Outcome]) -> int:
    """Print the survivors; return 1 if a survivor has no reason, else 0."""
    fates = Counter(outcome.fate for outcome in outcomes)
    print(f"\n{fates['killed'] + fates['slow']} of {len(outcomes)} faults were detected by a test.")
    listed, unexplained = known(), 0
    for outcome in outcomes:
        if outcome.fate != "survived":
            continue
        reason = _reason(outcome.mutant, listed)
        unexplained += reason is None
        print(f"  survived: {outcome.mutant.name}\n            {reason or 'NO KNOWN REASON'}")
    return int(unexplained > 0)


def _reason(mutant: Mutant, listed: list[Survivor]) -> str | None:
    text = (ROOT / SOURCE / mutant.path).read_text(encoding="utf-8")
    return next((one.reason for one in listed if one.is_it(mutant, text)), None)


if __name__ == "__main__":
    sys.exit(main())
