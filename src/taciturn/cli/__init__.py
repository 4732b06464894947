"""The command line: parse options, call the library, print. To import a command's file adds the command."""

from importlib import import_module

from .app import main

_COMMANDS = (
    "budget certify data demo plan verify jobs.check jobs.init jobs.predict jobs.statistics jobs.train "
    "research.attack research.audit research.reproduce research.sweep "
    "sites.approve sites.keys sites.kit sites.run sites.up"
)
for _name in _COMMANDS.split():
    import_module(f"{__name__}.{_name}")

__all__ = ["main"]
