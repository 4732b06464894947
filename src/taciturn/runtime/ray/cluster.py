"""The cluster a run takes place on: joined, or started here on loopback and stopped again."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray._private import ray_constants

from ...core.errors import ParameterError, WorkerLost

LOOPBACK = "127.0.0.1"

_PATIENCE = 10.0  # seconds until a host counts as unreachable

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a worker without GPUs leaves the variables of GPUs alone
}
_LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # what Ray starts stays on loopback, see `_on_loopback`
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # so soon its agents end after a driver that was killed
}


@contextmanager
def cluster(address: str | None, cpus: int) -> Iterator[None]:
    """Inside, this process is part of a Ray cluster.

    One that the process has joined before is used and left as it is. Else `address`, or $RAY_ADDRESS, is
    joined and left again. With neither, a cluster of `cpus` is started on this machine, reachable from this
    machine only, without dashboard and usage statistics, and stopped at the end.
    """
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address == "local":
        options |= {"num_cpus": cpus, "include_dashboard": False, "_node_ip_address": LOOPBACK}
    _connect(address, options)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(address: str, options: dict[str, Any]) -> None:
    local = address == "local"
    if not local:
        _check_reachable(address)
    loopback = local or address.rpartition(":")[0] in (LOOPBACK, "localhost")
    with _ray_settings(_QUIET | (_LOCAL if local else {}), loopback=loopback):
        try:
            context = ray.init(address=address, **options)
        except ConnectionError as error:
            raise _unreachable(address) from error
    if local and context.address_info["node_ip_address"] != LOOPBACK:
        ray.shutdown()
        raise WorkerLost("Ray did not stay on loopback; start a cluster yourself and give its `address`.")


def _check_reachable(address: str) -> None:
    """Knock at host:port, since Ray would try for many minutes; other forms of address are left to Ray."""
    host, _, port = address.rpartition(":")
    if address == "auto" or "://" in address:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        raise _unreachable(address) from error


def _unreachable(address: str) -> ParameterError:
    return ParameterError(f"`address` must be host:port of a running Ray cluster; got {address!r}.")


@contextmanager
def _ray_settings(wanted: dict[str, str], *, loopback: bool) -> Iterator[None]:
    """Inside, Ray logs errors only, and the processes that it starts inherit these variables.

    With `loopback`, Ray takes 127.0.0.1 for what it says. Elsewhere it puts the machine's outward address in
    its place, and listens there. That switch is made for systems with a personal firewall, and is read from
    the environment when Ray is imported. Variables that the user has set are left as they are.
    """
    log, added = logging.getLogger("ray"), {k: v for k, v in wanted.items() if k not in os.environ}
    level, outward = log.level, ray_constants.ENABLE_RAY_CLUSTER
    os.environ.update(added)
    log.setLevel(logging.ERROR)
    ray_constants.ENABLE_RAY_CLUSTER = outward and not loopback
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = outward
        log.setLevel(level)
        for name in added:
            os.environ.pop(name, None)
