"""The measurements behind docs/scale.md run on the present code and give possible figures."""

from __future__ import annotations

from benchmarks.scale.measure import driver_costs


def test_driver_holds_bytes_for_each_site_and_each_round():
    costs = driver_costs(300)
    assert costs["bytes"] > 0 and costs["bytes_round"] > 8  # at least one float per site and round
    assert costs["prepare"] > 0 and costs["charge"] > 0 and costs["certificate"] > 0
