"""Join a Ray cluster for a run, or start a cluster on this machine (on loopback) and stop it afterwards."""

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
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a worker without GPUs leaves the GPU variables unchanged
}
_LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's processes listen on loopback only, see `_ray_settings`
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # if this process is killed, Ray's agents end after 10 s
}


@contextmanager
def cluster(address: str | None, cpus: int) -> Iterator[None]:
    """A block in which this process is part of a Ray cluster.

    If the process has already joined a cluster, the block uses that cluster, and the process stays in it
    afterwards. Otherwise the process joins the cluster at `address`, or at $RAY_ADDRESS, and leaves it at the
    end. If neither address is given, the block starts a cluster with `cpus` CPUs on this machine and stops it
    at the end. This cluster is reachable from this machine only; it has no dashboard and sends no usage
    statistics.
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
        raise WorkerLost(
            "Ray does not listen on 127.0.0.1 only, so other machines could connect to it. "
            "Start a Ray cluster yourself, and set `address` to its address."
        )


def _check_reachable(address: str) -> None:
    """Raise if host:port does not answer; Ray would try for minutes. Ray checks "auto" and URLs itself."""
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
    """A block in which Ray logs only errors, and its processes inherit the environment variables `wanted`.

    Variables that the user has set stay unchanged. With `loopback`, the block changes a switch of Ray
    (`ENABLE_RAY_CLUSTER`) so that Ray listens on 127.0.0.1; otherwise Ray would replace 127.0.0.1 by the
    machine's external address. Ray itself reads this switch from the environment only when it is imported.
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
