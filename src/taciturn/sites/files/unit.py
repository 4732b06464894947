"""A systemd unit for a site or a relay: started again where that can help, and shut in.

`MemoryDenyWriteExecute` is left out on purpose: the solver is compiled at its first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import NOT_AGAIN, ParameterError

_UNIT = """\
[Unit]
Description=taciturn {what}
After=network-online.target
Wants=network-online.target

[Service]
User={user}
WorkingDirectory={folder}
ExecStart={command}
Restart=on-failure
RestartPreventExitStatus={codes}
RestartSec=30
TimeoutStopSec=30
LimitNOFILE=65536
MemoryMax=4G
UMask=0077
Environment=NUMBA_CACHE_DIR=%C/taciturn
CacheDirectory=taciturn
{paths}NoNewPrivileges=true
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome={home}
PrivateTmp=true
PrivateDevices=true
ProtectClock=true
ProtectControlGroups=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectKernelTunables=true
ProtectProc=invisible
RemoveIPC=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
PrivateUsers=true
PrivateMounts=true

[Install]
WantedBy=multi-user.target
"""


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
    return _UNIT.format(
        what=what,
        command=" ".join(command),
        folder=folder,
        user=user,
        codes=" ".join(str(int(code)) for code in NOT_AGAIN),
        paths=f"ReadWritePaths={' '.join(places)}\n" if places else "",
        home="read-only" if home else "true",
    )
