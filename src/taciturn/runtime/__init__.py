"""Engines, which run all sites in one process, or all sites of a simulation on a Ray cluster."""

from typing import TYPE_CHECKING, Any

from .simulate import simulate

if TYPE_CHECKING:
    from .ray import RayEngine

__all__ = ["RayEngine", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "RayEngine":  # Ray is an optional dependency, so it is imported only when it is used
        from .ray import RayEngine

        return RayEngine
    raise AttributeError(f"module 'taciturn.runtime' has no attribute {name!r}")
