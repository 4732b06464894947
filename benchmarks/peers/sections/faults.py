"""Section 3, faults: kill -9 and restart of one party, a late party, an unauthenticated client."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.keys import Authority
from taciturn.sites.trial.rehearsal import free_ports, issue

from .. import federations
from ..pins import Environment
from ..results import read_one
from ..rows import read_model, write_rows
from ..running.sandbox import Process, Script, run
from . import ours
from .work import PORTS, ROUNDS, door, fresh, probed, script_of

KILLED_AFTER, BACK, LATE, PATIENCE, STRICT = 1, 2.0, 60.0, 400.0, 180.0
VICTIM = "site-3"
SAME = 1e-3  # replies are summed in the order of arrival, and early stopping enlarges the difference
# Settings that only the run with a kill has, and not the run of section 1.
SET = {"nvflare": "if four of five replies are enough and the server waits two seconds for the fifth"}


def measure(peer: str, what: str, env: Environment, base: Path, kept: Path) -> dict[str, Any]:
    """A peer's run with one disturbance, compared with its undisturbed run of section 1."""
    work = read_one(kept, peer, "work", env.version)
    folder = fresh(base / f"fault-{peer}-{what}")
    makers = {"kill": kill, "late": late, "stranger": stranger, "strict": kill_strict}
    patience = STRICT if what == "strict" else PATIENCE
    found = compared(
        {"model": np.array(work["model"])}, play(makers[what](peer, env, folder), folder, patience)
    )
    if what == "stranger" and peer == "nvflare":
        found |= {"door": door(folder)}
    if what != "kill":
        return found
    status = folder / "status.txt"
    return found | {"set": SET.get(peer), "status": status.read_text() if status.exists() else None}


def kill(peer: str, env: Environment, folder: Path) -> Script:
    """Kill all processes of one party and restart it, with the settings that the peer has for this case."""
    if peer != "nvflare":
        return kill_strict(peer, env, folder)
    rows = write_rows(folder.parent / "rows")
    return _killed(peer, env, federations.nvflare(env, rows, folder, ROUNDS[peer], "tolerant_job.py"))


def kill_strict(peer: str, env: Environment, folder: Path) -> Script:
    """The same kill in the unchanged run of section 1."""
    return _killed(peer, env, script_of(peer, env, folder))


def _killed(peer: str, env: Environment, script: Script) -> Script:
    """The script with a kill. FLARE's environment starts its clients, so their names differ."""
    if peer == "nvflare":
        again = replace(federations.nvflare_client(env, VICTIM), late=BACK)
        script = replace(script, processes=(*script.processes, again))
    return federations.killed(script, VICTIM, KILLED_AFTER, BACK)


def late(peer: str, env: Environment, folder: Path) -> Script:
    """One party starts late, while the others wait."""
    script = script_of(peer, env, folder)
    if peer == "nvflare":
        rows = write_rows(folder.parent / "rows")
        script = federations.nvflare_by_hand(env, rows, folder, ROUNDS[peer], VICTIM)
        script = replace(script, processes=(*script.processes, federations.nvflare_client(env, VICTIM)))
    return federations.delayed(script, VICTIM, LATE)


def stranger(peer: str, env: Environment, folder: Path) -> Script:
    """A sixth party without an invitation, whose rows have inverted labels."""
    rows = write_rows(fresh(folder.parent / "rows-six"))
    turned = turn_round(rows)
    script = script_of(peer, env, folder, rows)
    sixth = {
        "flwr": lambda: federations.supernode(env, "stranger", turned, 9190),
        "appfl": lambda: federations.appfl_client(env, "stranger", turned),
        "nvflare": lambda: federations.nvflare_stranger(folder),
    }[peer]()
    server, *others = script.processes
    # In APPFL the stranger takes the place of a site, and this site then waits forever.
    waits_for = () if peer == "appfl" else script.waits_for
    script = replace(script, processes=(server, sixth, *others), waits_for=waits_for)
    if peer != "nvflare":
        return script
    kit = folder / federations.OTHER_KIT  # the stranger's own client would not talk to this server
    return probed(script, PORTS[peer], kit / "client.crt", kit / "client.key")


def turn_round(rows: list[Path]) -> Path:
    """Write a sixth file: the rows of the first site with inverted labels."""
    turned = rows[0].with_name("site-5.npz")
    with np.load(rows[0]) as known:
        np.savez(turned, X=known["X"], y=-known["y"])
    return turned


def play(script: Script, folder: Path, patience: float = PATIENCE) -> dict[str, Any]:
    """Run a disturbed script; return its measurements and its model."""
    measured = run(replace(script, timeout=patience), folder)
    model = read_model(folder / "model.json") if measured["ended"] else None
    return {"facts": brief(measured, patience), "model": model}


def brief(measured: dict[str, Any], patience: float = PATIENCE) -> dict[str, Any]:
    """Whether the run ended, the seconds it took, and the seconds since the last disturbance."""
    facts = {"ended": measured["ended"], "seconds": measured["seconds"], "patience": patience}
    if measured["events"]:
        facts["since"] = measured["begun"] + measured["seconds"] - measured["events"][-1]["at"]
    return facts


def compared(plain: dict[str, Any], disturbed: dict[str, Any]) -> dict[str, Any]:
    """Compare a disturbed run with the undisturbed one: the distance of the models, relative to the norm."""
    facts = dict(disturbed["facts"])
    if plain["model"] is not None and disturbed["model"] is not None:
        gap = float(np.linalg.norm(plain["model"] - disturbed["model"]) / np.linalg.norm(plain["model"]))
        facts |= {"gap": gap, "same": gap < SAME}
    return facts


def measure_ours(base: Path) -> dict[str, Any]:
    """The faults at our sites, in a rehearsal with a seed, so that equal noise gives equal models."""
    plain = play_ours(base, "plain", lambda script: probed(script, port_of(base / "fault-ours-plain")))
    found = {"plain": plain["facts"] | {"tls": plain["tls"], "epsilon": plain["epsilon"]}}
    kill = play_ours(base, "kill", lambda script: federations.killed(script, VICTIM, KILLED_AFTER, BACK))
    late = play_ours(base, "late", lambda script: federations.delayed(script, VICTIM, LATE))
    other = play_ours(base, "stranger", impostor)
    for name, run_ in (("kill", kill), ("late", late), ("stranger", other)):
        found[name] = compared(plain, run_) | {"epsilon": run_["epsilon"]}
    found["stranger"]["door"] = other["tls"]
    return found


def play_ours(base: Path, name: str, change: Any) -> dict[str, Any]:
    """Run one rehearsal of our sites."""
    folder = fresh(base / f"fault-ours-{name}")
    measured = run(
        replace(change(ours.script(folder, "masked", seed=7, rounds=15)), timeout=PATIENCE), folder
    )
    model, spent = None, None
    if measured["ended"]:
        model, _ = ours.read_sites(folder)
        text = (folder / "net" / VICTIM / "state" / "certificate.json").read_text(encoding="utf-8")
        certificate = Certificate.from_json(text)
        certificate.verify()
        spent = certificate.epsilon
    return {"facts": brief(measured), "model": model, "tls": door(folder), "epsilon": spent}


def port_of(folder: Path) -> int:
    """The port of the first site."""
    text = (folder / "net" / "job.toml").read_text(encoding="utf-8")
    return int(text.partition('"tls/127.0.0.1:')[2].partition('"')[0])


def impostor(script: Script) -> Script:
    """An attacker with a key of another authority claims to be a site, and connects to the first site.

    Our program refuses to start with a key of another authority, so a plain TLS client connects instead.
    """
    site = next(entry for entry in script.processes if entry.name == VICTIM)
    real = Path(site.argv[-1]).parent
    fake = real.with_name("impostor")
    shutil.copytree(real, fake)
    for path in (*fake.glob("*.key"), *fake.glob("*.pem")):
        path.unlink()
    issue(Authority.throw_away(), fake, VICTIM, ["127.0.0.1"])
    text = (fake / "site.toml").read_text(encoding="utf-8")
    (fake / "site.toml").write_text(f'listen = "tls/127.0.0.1:{free_ports(1)[0]}"\n{text}', encoding="utf-8")
    with np.load(fake / "rows.npz") as rows:
        turned = {"X": rows["X"], "y": -rows["y"]}
    np.savez(fake / "rows.npz", **turned)
    command = (*site.argv[:-1], str(fake / "site.toml"))
    script = replace(script, processes=(*script.processes, Process("impostor", command)))
    return probed(script, port_of(real.parents[1]), fake / f"{VICTIM}.pem", fake / f"{VICTIM}.key")
