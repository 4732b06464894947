"""The command line. Each module has one or a few commands; importing it adds them to `taciturn`."""

from importlib import import_module

from .app import main

_COMMANDS = (  # in the order of `taciturn --help`
    "demo jobs.init jobs.train jobs.predict jobs.statistics plan certify verify data "
    "research.reproduce research.attack budget sites.run sites.keys sites.up"
)
for _name in _COMMANDS.split():
    import_module(f"{__name__}.{_name}")

__all__ = ["main"]
