"""`taciturn site up` runs a trial network on this machine; `taciturn site relay` runs a relay for sites."""

from __future__ import annotations

import json
import signal
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import MissingExtra, ParameterError
from .logs import until_stopped
from .run import site


@site.command("up")
def up(
    local: Annotated[int, typer.Option(help="The number of sites to start on this machine.")] = 5,
    rounds: Annotated[int, typer.Option(help="The number of rounds.")] = 20,
    epsilon: Annotated[
        float, typer.Option(help="The privacy budget epsilon of the whole run, at delta = 1e-5.")
    ] = 3.0,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for all files; a temporary folder by default.")
    ] = None,
) -> None:
    """Try a network on this machine.

    Each site is a process with made-up rows. The sites connect by mutual TLS, and train one model together.
    """
    from ...core.progress import progress
    from ...sites.files.site import load_site
    from ...sites.rounds.prepare import make_ready
    from ...sites.trial.rehearsal import accuracy, make_local, run_processes, watch

    if local < 2:
        raise ParameterError(f"`--local` must be at least 2; got {local}.")
    if find_spec("zenoh") is None:  # before any file is written
        raise MissingExtra("eclipse-zenoh", "zenoh")
    job, own = local_settings(local, rounds, epsilon)
    folder = out or Path(tempfile.mkdtemp(prefix="taciturn-up-"))
    paths, held_out = make_local(folder, local, job=job, site=own)
    typer.echo(f"{local} sites on a ring, in {folder}: each has its own process, rows and keys")
    typer.echo("the first start after an installation compiles the solver, which takes up to a minute")
    make_ready(load_site(paths[0])).warm_up()  # compile once in this process, and not in every site's process
    with run_processes(paths) as processes, progress(rounds, "rounds", show=None) as step:
        done = 0

        def shown(completed: list[int]) -> None:
            nonlocal done
            step(min(completed) - done)
            done = min(completed)

        statuses = watch(paths, processes, shown)
    models = [json.loads((path.parent / "state" / "model.json").read_text()) for path in paths]
    for status in statuses:
        from ...core.formatting import format_cost, format_delta

        spent = f"epsilon {format_cost(status.epsilon)} at delta {format_delta(status.delta)}"
        typer.echo(f"  {status.site}: {status.completed} rounds, {spent}")
    same = all(model["coef"] == models[0]["coef"] for model in models)
    typer.echo(f"all {local} sites have {'the same model' if same else 'DIFFERENT models'}; accuracy on")
    typer.echo(f"held-out rows: {accuracy(models[0]['coef'][0], held_out):.1%} (at most 90% is possible)")
    if not same:
        raise typer.Exit(1)


def local_settings(sites: int, rounds: int, epsilon: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of job.toml and site.toml, planned for this number of rounds.

    The penalty, a setting that keeps a site's model close to its neighbours' models, grows from round to
    round. The planner lets the noise fall at the same time: otherwise, the last rounds would be mostly noise.
    """
    from ...graph import Graph
    from ...planning.plan import plan
    from ...sites.trial.rehearsal import FEATURES, ROWS

    graph = Graph.ring(sites) if sites > 2 else Graph.path(2)
    found = plan(
        epsilon=epsilon,
        samples=ROWS,
        graph=graph,
        dimension=FEATURES,
        rounds=rounds,
        noise="gaussian",
        effort="quick",
    ).to_dict()
    job = {name: found[name] for name in ("rounds", "C", "regularization", "dual_step", "delta")}
    own = {name: found[name] for name in ("penalty", "noise", "output_noise")}
    return job, own | {"budget": {"epsilon": epsilon}}


@site.command("relay")
def relay(
    job: Annotated[Path, typer.Argument(help="The public job file, job.toml; it must have a `relay`.")],
    private: Annotated[Path, typer.Option(help="The relay's private key.")],
    certificate: Annotated[Path, typer.Option(help="The relay's certificate.")],
    authority: Annotated[
        Path, typer.Option(help="The certificate of the authority that signed the sites' keys.")
    ],
    config: Annotated[
        bool,
        typer.Option("--config", help="Do not run; print the configuration for zenohd, the Zenoh router."),
    ] = False,
) -> None:
    """Forward encrypted messages between sites until Ctrl-C.

    A relay is for sites that can make connections but cannot accept any. The relay cannot read the messages.
    """
    with until_stopped():
        from ...sites.files.job import load_job
        from ...sites.wire.config import open_relay, relay_settings

        keys = {"private": private, "certificate": certificate, "authority": authority}
        settings = relay_settings(load_job(job), **keys)
        if config:
            typer.echo(json.dumps(settings, indent=2))
            return
        router = open_relay(settings)
        typer.echo(f"relaying at {settings['listen']['endpoints'][0]} until Ctrl-C")
        try:
            signal.pause()
        finally:
            router.close()
