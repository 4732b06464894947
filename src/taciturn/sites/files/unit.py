"""A systemd unit for a site or a relay: started again where that can help, and shut in.

`MemoryDenyWriteExecute` is left out on purpose: the solver is compiled at its first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...core.errors import NOT_AGAIN, ParameterError
from ...core.templates import fill


def unit(
    what: str,
    command: list[str],
    folder: Path,
    *,
    user: str,
    writes: Sequence[Path] = (),
) -> str:
    """A unit that runs `command` in `folder` as `user`, who may write to the folders `writes` alone."""
    places = list(dict.fromkeys(map(str, writes)))
    words = [*command, str(folder), *places]
    for word in [*words, user]:
        if not word.isprintable() or set(word) & set(" \t\"'\\%$;"):
            raise ParameterError(f"a unit cannot hold {word!r}: use paths and names without such characters.")
    home = any(word.startswith(("/home/", "/root/", "/run/user/")) for word in words)
    return fill(
        __package__,
        "unit.service",
        what=what,
        command=" ".join(command),
        folder=str(folder),
        user=user,
        codes=" ".join(str(int(code)) for code in NOT_AGAIN),
        paths=f"ReadWritePaths={' '.join(places)}\n" if places else "",
        home="read-only" if home else "true",
    )
