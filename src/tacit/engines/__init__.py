"""Who drives the nodes: one process, a cluster, or real sites."""

from .simulate import simulate

__all__ = ["simulate"]
