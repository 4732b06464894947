"""The versions of Python, of taciturn, and of the packages that results depend on."""

from __future__ import annotations

from functools import cache

VERSION = "0.2.2"


def versions() -> dict[str, str]:
    """The versions of Python, taciturn, numpy and scipy, by name."""
    return dict(_installed())


@cache
def _installed() -> tuple[tuple[str, str], ...]:
    """The versions, looked up only once: every certificate states them, and the lookup searches the disk."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "taciturn": VERSION}
    for package in ("numpy", "scipy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return tuple(found.items())
