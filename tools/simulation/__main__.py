"""python -m tools.simulation --runs 1000 --seed 1

The command simulates networks of sites under random faults, and checks every invariant after each run. The
exit code is 0 if all invariants held. Every failing seed is printed, and `--replay SEED` shows its trace.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .faults import draw_faults, draw_plan
from .invariants import check, observed
from .liars import plant_liars
from .world import World


def simulate(
    seed: int, sites: int | None = None, method: str | None = None, *, trace: bool = False
) -> tuple[World, list[str]]:
    """Simulate one run, and return it with a line for each broken invariant."""
    world = World(draw_plan(seed, sites, method), [] if trace else None)
    draw_faults(world)
    plant_liars(world)
    with observed(world) as observer:
        try:
            world.run()
        except Exception as error:  # a crash of a site is a broken invariant, too
            return world, [f"crash: {type(error).__name__}: {error}"]
    return world, check(world, observer)


def main() -> int:
    """Run the command."""
    about = "Simulate runs under random faults, and check every invariant after each run."
    parser = argparse.ArgumentParser(prog="python -m tools.simulation", description=about)
    parser.add_argument("--runs", type=int, default=1000, help="number of runs; each has its own seed")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run; then one more per run")
    parser.add_argument("--sites", type=int, default=None, help="number of sites, 2 to 20; drawn by default")
    parser.add_argument("--method", choices=("masked", "penalty"), default=None, help="drawn by default")
    parser.add_argument("--minutes", type=float, default=None, help="begin no run after this many minutes")
    parser.add_argument("--replay", type=int, default=None, help="run this one seed, and print its trace")
    told = parser.parse_args()
    if told.replay is not None:
        world, broken = simulate(told.replay, told.sites, told.method, trace=True)
        print("\n".join(world.trace or ()))
        print(world.plan, *world.happened, *broken, sep="\n")
        return 1 if broken else 0
    return _many(told)


def _many(told: argparse.Namespace) -> int:
    ends: Counter[str] = Counter()
    faults, failed, done, began = 0, 0, 0, time.process_time()
    latest = time.monotonic() + 60 * (told.minutes or 1e9)
    for seed in range(told.seed, told.seed + told.runs):
        if time.monotonic() > latest:
            break
        done += 1
        world, broken = simulate(seed, told.sites, told.method)
        faults += len(world.happened)
        for site in world.sites:
            stop = site.stops[-1].reason.value if site.stops else "lost"
            ends["finished" if site.finished else stop] += 1
        if broken:
            failed += 1
            print(world.plan, *world.happened, *broken, sep="\n")
            print(f"seed {seed} breaks an invariant; its trace: {_again(told, seed)}", flush=True)
        if done % 1000 == 0:
            print(f"{done} runs, {time.process_time() - began:.0f} s of CPU", flush=True)
    spent = time.process_time() - began
    held = f"{failed} of them break an invariant" if failed else "no invariant broken"
    print(f"{done} runs, {faults} faults, {held}; {done / spent:.1f} runs per CPU second")
    print(", ".join(f"{count} sites {what}" for what, count in ends.most_common()))
    return 1 if failed else 0


def _again(told: argparse.Namespace, seed: int) -> str:
    """The command that shows the trace of a seed, with the options of this call."""
    chosen = {"--replay": seed, "--sites": told.sites, "--method": told.method}
    options = [f"{name} {value}" for name, value in chosen.items() if value is not None]
    return " ".join(["python -m tools.simulation", *options])


if __name__ == "__main__":
    sys.exit(main())
