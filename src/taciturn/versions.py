"""What made this: our own version, and those that a number depends on."""

from __future__ import annotations

VERSION = "0.1.0"


def versions() -> dict[str, str]:
    """The versions of what the numbers depend on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "taciturn": VERSION}
    for package in ("numpy", "scipy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
