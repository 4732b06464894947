"""Runs on a Ray cluster. Each worker process (a Ray actor) computes a shard, which is a group of sites.

cluster.py   join a cluster, or start one on this machine
worker.py    the actor that computes a shard
driver.py    the driver: in each round it calls every shard, charges the ledger and passes messages on
engine.py    RayEngine: carries out a run, and resumes the run if a worker was lost
tasks.py     independent jobs, for parameter sweeps
"""

from ...core.errors import MissingExtra

try:
    import ray as _ray  # noqa: F401 - to report a missing Ray at once
except ImportError as error:
    raise MissingExtra("ray", "ray") from error

from .engine import RayEngine

__all__ = ["RayEngine"]
