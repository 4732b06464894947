"""The processes of each peer for five sites on one machine, started as the peer's own guide shows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from .pins import Environment
from .rows import SITES
from .running.keys import write_certificates, write_key
from .running.sandbox import Process, Script

ADAPTERS = Path(__file__).with_name("adapters")
PORT = 8000


def flower(env: Environment, rows: list[Path], folder: Path, rounds: int, keys: Path | None = None) -> Script:
    """SuperLink, five SuperNodes and `flwr run`, without TLS, as in its guide to a first deployment.

    With the folder `keys`: TLS and registered SuperNodes, as in its guides to TLS and authentication.
    """
    assert env.python is not None
    folder.mkdir(parents=True, exist_ok=True)
    app, home, bin_ = folder / "app", folder / ".flwr", env.python.parent
    shutil.copytree(ADAPTERS / "flower", app, ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    locks, trust, first = ["--insecure"], "insecure = true", []
    if keys is not None:
        paths = write_certificates(keys)
        locks = ["--ssl-ca-certfile", str(paths["ca.pem"]), "--ssl-certfile", str(paths["server.pem"])]
        locks += ["--ssl-keyfile", str(paths["server.key"]), "--enable-supernode-auth"]
        trust = f'root-certificates = "{paths["ca.pem"]}"'
        public = [write_key(keys / f"site-{i}").with_suffix(".pub") for i in range(SITES)]
        each = [f"flwr supernode register {path} here" for path in public]
        first = [
            Process("register", ("sh", "-c", " && ".join([*each, "echo all registered"])), "all registered")
        ]
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{PORT}"\n{trust}\n'
    )
    link = (str(bin_ / "flower-superlink"), *locks, "--disable-runtime-dependency-installation")
    nodes = [supernode(env, f"site-{i}", rows[i], 9100 + i, keys) for i in range(SITES)]
    config = ("--run-config", f"num-server-rounds={rounds}")
    submit = Process("run", (str(bin_ / "flwr"), "run", str(app), "here", *config))
    path = {"PATH": f"{bin_}:/usr/bin:/bin", "FLWR_HOME": str(home)}
    server = Process("server", link, ready=f"port:{PORT}")
    return Script((server, *first, *nodes, submit), timeout=400.0, fails_with="run", env=path)


def supernode(env: Environment, name: str, rows: Path, port: int, keys: Path | None = None) -> Process:
    """One site of Flower."""
    assert env.python is not None
    locks = ["--insecure"]
    if keys is not None:
        locks = [
            "--root-certificates",
            str(keys / "ca.pem"),
            "--auth-supernode-private-key",
            str(keys / name),
        ]
    command = [str(env.python.parent / "flower-supernode"), *locks, "--superlink", f"127.0.0.1:{PORT}"]
    return Process(name, (*command, "--port", str(port), "--node-config", f'rows="{rows}"'))


def disropt(env: Environment, rows: list[Path], rounds: int, penalty: float, weight: float) -> Script:
    """Five MPI processes on one machine, started like its examples."""
    mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_tcp_if_include", "lo")
    launcher = (str(env.python), str(ADAPTERS / "disropt" / "launcher.py"), str(rows[0].parent))
    settings = (str(rounds), repr(penalty), repr(weight))
    process = Process("mpi", (*mpirun, "-np", str(SITES), *launcher, *settings))
    return Script((process,), timeout=900.0, waits_for=("mpi",), fails_with="mpi")


def killed(script: Script, who: str, after: int, back: float, again: str | None = None) -> Script:
    """The same script, with kill -9 of one party after this many rounds, and a restart some seconds later."""
    disturb = {"kind": "kill", "who": who, "round": after, "back": back, "again": again or who}
    return replace(script, disturb=disturb)


def delayed(script: Script, who: str, seconds: float) -> Script:
    """The same script, with one party that starts late."""
    late = tuple(replace(entry, late=seconds) if entry.name == who else entry for entry in script.processes)
    return replace(script, processes=late, disturb={"kind": "late"})


def appfl(env: Environment, rows: list[Path], folder: Path, rounds: int, keys: Path | None = None) -> Script:
    """A gRPC server and five clients, without TLS, as in its examples.

    With the folder `keys`: TLS, and one token for all sites.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in (ADAPTERS / "appfl").iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    locks: list[str] = []
    if keys is not None:
        paths = write_certificates(keys)
        facts = {"server_certificate": paths["server.pem"], "server_certificate_key": paths["server.key"]}
        locks = ["use_ssl=true", *(f"{key}={path}" for key, path in facts.items()), *_token("of all sites")]
    server = Process("server", (str(env.python), "server.py", str(rounds), *locks), ready="port:50051")
    clients = [appfl_client(env, f"site-{i}", rows[i], keys) for i in range(SITES)]
    return Script((server, *clients), timeout=400.0, waits_for=("site-0",), fails_with="site-0")


def appfl_client(
    env: Environment, name: str, rows: Path, keys: Path | None = None, token: str = "of all sites"
) -> Process:
    """One site of APPFL."""
    locks = [] if keys is None else ["use_ssl=true", f"root_certificate={keys / 'ca.pem'}", *_token(token)]
    return Process(name, (str(env.python), "client.py", name, str(rows), *locks))


def _token(secret: str) -> list[str]:
    """The settings of APPFL's authenticator, as arguments of the command line."""
    return [
        "use_authenticator=true",
        "authenticator=NaiveAuthenticator",
        f"authenticator_args.auth_token=a token {secret}",
    ]


def nvflare(env: Environment, rows: list[Path], folder: Path, rounds: int, job: str = "job.py") -> Script:
    """FLARE's recipe in its proof-of-concept environment, which starts a server and five clients."""
    assert env.python is not None
    folder.mkdir(parents=True, exist_ok=True)
    for path in (ADAPTERS / "nvflare").iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    submit = Process("job", (str(env.python), job, str(rows[0].parent), str(rounds)))
    path = {"PATH": f"{env.python.parent}:/usr/bin:/bin", "NVFLARE_POC_WORKSPACE": str(folder / "poc")}
    return Script((submit,), timeout=400.0, waits_for=("job",), fails_with="job", env=path)


KIT = "poc/example_project/prod_00/admin@nvidia.com"  # the administrator's kit, from `nvflare poc prepare`


def nvflare_client(env: Environment, name: str) -> Process:
    """One client of the prepared network, started by hand."""
    assert env.python is not None
    return Process(name, (str(env.python.parent / "nvflare"), "poc", "start", "-p", name, "--no-wait"))


def nvflare_by_hand(env: Environment, rows: list[Path], folder: Path, rounds: int, absent: str) -> Script:
    """The same job on a network that is prepared first, then started without one client."""
    script = nvflare(env, rows, folder, rounds)
    start = f"nvflare poc prepare -n {SITES} && nvflare poc start -ex {absent} --no-wait && echo all started"
    network = Process("network", ("sh", "-c", start), ready="all started")
    (job,) = script.processes
    return replace(script, processes=(network, replace(job, argv=(*job.argv, str(folder / KIT)))))


OTHER_KIT = "other/example_project/prod_00/site-6/startup"  # with the stranger's certificate and key


def nvflare_stranger(folder: Path) -> Process:
    """A sixth client at the same address, with the certificates of another network."""
    other = {"NVFLARE_POC_WORKSPACE": str(folder / "other"), "HOME": str(folder / "other-home")}
    start = "mkdir -p $HOME && nvflare poc prepare -n 6 && nvflare poc start -p site-6 --no-wait"
    return Process("stranger", ("sh", "-c", start), env=other)


def diffprivlib(env: Environment, rows: list[Path], epsilon: float, C: float, seeds: int) -> Script:
    """One process, which has all rows."""
    fit = str(ADAPTERS / "diffprivlib" / "fit.py")
    command = (str(env.python), fit, str(rows[0].parent), repr(epsilon), repr(C), str(seeds))
    return Script((Process("fit", command),), timeout=900.0, waits_for=("fit",), fails_with="fit")


def in_process(env: Environment, peer: str, folder: Path, processes: int) -> Script:
    """The peer's own noise without a network, for many seeds and settings."""
    code = ADAPTERS / peer
    path = {"PYTHONPATH": f"{ADAPTERS}:{code}"}
    command = (str(env.python), str(code / "in_process.py"), str(folder))
    fits = [Process(f"fit-{i}", (*command, str(i)), env=path) for i in range(processes)]
    names = tuple(fit.name for fit in fits)
    return Script(tuple(fits), 900.0, model="models-0.json", waits_for=names, fails_with=names[0])


def counter(env: Environment, peer: str, name: str) -> Script:
    """A package's counter of epsilon: one process is killed after two rounds, one is not killed."""
    code = ADAPTERS / peer
    path = {"PYTHONPATH": f"{ADAPTERS}:{code}"}
    command = (str(env.python), str(code / "budget.py"))
    both = tuple(Process(which, (*command, which), env=path) for which in (name, "whole"))
    script = Script(both, 120.0, model=f"{name}.json", waits_for=("whole",), fails_with="whole")
    return killed(script, name, 2, 1.0)
