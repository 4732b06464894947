"""Runs on a Ray cluster. Each Ray actor holds a shard, which is a group of many sites.

cluster.py   join a cluster, or start one on this machine
worker.py    the actor that computes a shard
driver.py    the rounds of a run: charge, ask every shard, pass messages between shards
engine.py    RayEngine: runs a setup, and resumes if a worker was lost
tasks.py     independent jobs, for sweeps
"""

from ...core.errors import MissingExtra

try:
    import ray as _ray  # noqa: F401 - so that its absence is reported here
except ImportError as error:
    raise MissingExtra("ray", "ray") from error

from .engine import RayEngine

__all__ = ["RayEngine"]
