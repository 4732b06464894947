"""A cluster, on Ray core: a few shard actors that hold many sites each, never an actor per site.

cluster.py   join one, or start one here on loopback
worker.py    a shard in a process of the cluster
driver.py    the rounds: charge, ask every shard, pass references on
engine.py    RayEngine: from a setup to a run, resumed where a worker was lost
tasks.py     independent jobs, for sweeps
"""

from ...core.errors import MissingExtra

try:
    import ray as _ray  # noqa: F401 - so that its absence is reported here
except ImportError as error:
    raise MissingExtra("ray", "ray") from error

from .engine import RayEngine

__all__ = ["RayEngine"]
