"""Every `taciturn site` command answers an invalid file with one line and exit code 6."""

import importlib
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("zenoh")

import taciturn.sites.rounds.driver as driver
from support.sitestore import charge_round, open_store
from support.sitework import frame, network
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode
from taciturn.sites.files import database
from taciturn.sites.files.keys import load_key, signing_request
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.frames import Kind
from taciturn.sites.rounds.prepare import make_ready


class Reached(BaseException):
    """The site would go on the network now."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A network whose first site has released a round, as it is then."""
    folder = tmp_path_factory.mktemp("kept") / "net"
    ready = make_ready(load_site(network(folder)[0]))
    with open_store(ready) as store:
        charge_round(ready, store, 1, frame(ready.site, Kind.MESSAGE, 1))
    site = folder / "site-0"
    (site / "site-0.csr").write_bytes(signing_request(load_key(site / "site-0.key"), "site-0", ["localhost"]))
    return folder


@pytest.fixture
def net(kept, tmp_path, monkeypatch):
    def reached(*_):
        raise Reached

    now = importlib.import_module(driver.__name__)  # what a command will import
    monkeypatch.setattr(now, "ZenohLinks", reached)
    monkeypatch.setattr(now.PreparedSite, "warm_up", lambda ready: None)
    return shutil.copytree(kept, tmp_path / "net")


def garbage(path):
    path.write_bytes(bytes(range(256)) * 20)


def empty(path):
    path.write_bytes(b"")


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def no_folder(path):
    shutil.rmtree(path)
    path.write_bytes(b"")


def changed(statement):
    def change(path):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(statement)

    return change


def foreign(path):
    path.unlink()
    changed("CREATE TABLE a (b)")(path)


STATUS, RUN, FINISH = ["status", "site.toml"], ["run", "site.toml"], ["finish", "site.toml"]


def penalty(value):
    """A number that no charge can have."""

    def put(path):
        text, found = re.subn(r"(?m)^penalty = .*$", f"penalty = {value}", path.read_text())
        assert found == 1
        path.write_text(text)

    return put


def watch_nowhere(path):
    path.write_text('watch = "127.0.0.1:99999"\n' + path.read_text())


def many_hosts(path):
    hosts = [f"h{i}.example" for i in range(2000)]
    path.write_bytes(signing_request(load_key(path.with_name("site-0.key")), "site-0", hosts))


STATE = (STATUS, [*STATUS, "--json"], RUN, FINISH)
CHECK = ["check", "site.toml", "--wait", "0"]
VERIFY = ["verify", "state/statement.json", "--authority", "../authority.pem"]
PROOF = ["verify", "--proof", "state/proof-x-1.json", "--authority", "../authority.pem"]
SIGN = ["sign", "site-0.csr", "--authority", "..", "--yes", "--out", "new.pem"]
KEYS, UNIT = ["keys", "site.toml"], ["unit", "site.toml"]
RELAY = ["relay-keys", "../job.toml"]
EVERY = (STATUS, RUN, FINISH, CHECK, KEYS, UNIT)
BROKEN = (garbage, empty, folder)

CASES = {
    "state/site.sqlite": [
        (STATE, garbage, half, folder, changed("PRAGMA user_version = 9")),
        (STATE, changed("UPDATE ledger_head SET rows = 9"), foreign),
        (STATE[:2], empty),  # a start creates a new file, and the account shows what is missing
    ],
    "state/site.sqlite-wal": [(STATE, folder)],
    "state/site.sqlite.lock": [(STATE, folder)],
    "state/proof-x-1.json": [((RUN, FINISH, PROOF), *BROKEN)],
    "state/statement.json": [((VERIFY,), *BROKEN)],
    "state": [(STATE, no_folder)],
    "site.toml": [
        (EVERY, *BROKEN),
        ((RUN, FINISH, CHECK), penalty("1e308"), penalty("1e300"), penalty("1e-200")),
        ((RUN,), watch_nowhere),
    ],
    "../job.toml": [((*EVERY, RELAY, ["kit", "../job.toml", "new"]), *BROKEN)],
    "site-0.key": [((RUN, FINISH, CHECK), *BROKEN)],
    "site-0.pem": [((RUN, FINISH, CHECK), *BROKEN)],
    "rows.npz": [((RUN, FINISH, CHECK), *BROKEN)],
    "../authority.pem": [((RUN, CHECK, VERIFY, SIGN), *BROKEN)],
    "../authority.key": [((SIGN,), *BROKEN)],
    "site-0.csr": [((SIGN,), *BROKEN, many_hosts)],
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_file_is_one_line_and_code_6(kept, net, name, capsys, monkeypatch):
    for commands, *ways in CASES[name]:
        for way in ways:
            for command in commands:
                shutil.rmtree(net)
                shutil.copytree(kept, net)
                monkeypatch.chdir(net / "site-0")
                way((net / "site-0" / name).absolute())
                told(capsys, command)


def told(capsys, command):
    """The one line with which a command ends."""
    capsys.readouterr()
    code = run(["site", *command])
    out, err = capsys.readouterr()
    assert code == ExitCode.WRONG_FILES, (command, code, out, err)
    (line,) = err.splitlines()
    assert line.startswith("taciturn: ") and line.isprintable() and len(line) < 400, line
    return line


@pytest.mark.parametrize("name", ["state", "state/site.sqlite", "state/site.sqlite.lock"])
def test_unreadable_file_is_named(net, name, capsys, monkeypatch):
    monkeypatch.chdir(net / "site-0")
    closed = (net / "site-0" / name).resolve()
    allowed = os.access
    monkeypatch.setattr(  # root may read everything
        database.os, "access", lambda path, rights: path.resolve() != closed and allowed(path, rights)
    )
    for command in STATE:
        assert f"{name}: this user may not read it" in told(capsys, command)


def test_intact_files_are_not_reported_as_wrong(net, capsys, monkeypatch):
    """The same commands accept undamaged files, and files that do not exist yet."""
    monkeypatch.chdir(net / "site-0")
    assert run(["site", *STATUS]) == run(["site", *CHECK]) == run(["site", *UNIT]) == ExitCode.DONE
    assert run(["site", *STATUS, "--json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["released"] == 1
    for command in (RUN, FINISH):
        with pytest.raises(Reached):
            run(["site", *command])
    shutil.rmtree("state")
    assert run(["site", *STATUS]) == ExitCode.FAILED
    assert "does not exist yet" in capsys.readouterr().err
