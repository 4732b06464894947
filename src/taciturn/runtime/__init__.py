"""The engines that drive nodes: one process or a cluster."""

from typing import TYPE_CHECKING, Any

from .simulate import simulate

if TYPE_CHECKING:
    from .ray import RayEngine

__all__ = ["RayEngine", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "RayEngine":  # an extra: loaded when it is asked for
        from .ray import RayEngine

        return RayEngine
    raise AttributeError(f"module 'taciturn.runtime' has no attribute {name!r}")
