"""Hostile and broken files: one clear line each, within bounds of time and memory, and nothing is signed.

All of it is about the files of one site, before it goes on a network: how many sites there are is no matter.
"""

import io
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from support.sitehub import start as start_sites
from support.sitehub import until, use_hub
from support.sitemasked import masked_network
from support.sitestore import open_store
from support.sitework import network
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode, TaciturnError
from taciturn.sites.files.keys import PEM, Authority, load_certificates, new_key, signing_request
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.ending import recall
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.watch.status import completed_rounds, read_status
from taciturn.sites.wire.refusals import Refusals

MEMORY, SECONDS = 3 * 2**30, 120  # of address space, and of CPU


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded as Linux does it")
def test_every_hostile_file_is_one_line_within_time_and_memory(tmp_path):
    script = Path(__file__).with_name("hostile_files.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=bounded,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for label, told in json.loads(done.stdout).items():
        assert told["code"] in (1, 6), (label, told)
        (line,) = told["err"].splitlines()
        assert line.isprintable() and len(line) < 2200, label
        assert "Traceback" not in line and line.startswith("taciturn: "), label


DAMAGE = [b"x", "text", 2**62, bytes(5000)]


@pytest.fixture(scope="module", params=["penalty", "masked"])
def begun(request, tmp_path_factory):
    """A site in the middle of a run, and its file as it is then."""
    folder = tmp_path_factory.mktemp("damaged")
    make = network if request.param == "penalty" else masked_network
    paths = make(folder / "net", job={"rounds": 60})
    ready = make_ready(load_site(paths[0]))
    with pytest.MonkeyPatch.context() as patched:
        hub = use_hub(patched)
        running = start_sites(paths)
        until(lambda: completed_rounds(ready.site) > 2)
        for name in list(hub.on):
            hub.kill(name)
        for thread in running:
            thread.wait()
    whole = folder / "whole.sqlite"
    with closing(sqlite3.connect(ready.site.database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        places = [(t, row[1]) for t in tables for row in db.execute(f"PRAGMA table_info({t})")]
    shutil.copy(ready.site.database, whole)
    return ready, whole, places


def restore(database, whole):
    """The file as it was, in its place: another file, or another lock, would be a state that was restored."""
    for path in database.parent.glob(f"{database.name}-*"):
        path.unlink()
    database.write_bytes(whole.read_bytes())


def damage(database, whole, table, column, value):
    """Write `value` into a column of the file; False where not even SQLite would have it there."""
    restore(database, whole)
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        try:
            db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        except sqlite3.Error:
            return False
    return True


def test_damaged_rows_of_a_state_file_are_one_line(begun):
    """Every column of every table, read by `status` and by a start before it connects."""
    ready, whole, places = begun
    restore(ready.site.database, whole)
    assert told(lambda: read_status(ready.site)) == told(lambda: start(ready)) == ""
    noticed = 0
    for table, column in places:
        for value in DAMAGE:
            if damage(ready.site.database, whole, table, column, value):
                lines = [told(lambda: read_status(ready.site)), told(lambda: start(ready))]
                noticed += any(lines)
                for line in filter(None, lines):
                    assert line.isprintable() and len(line) < 400, (table, column, value, line)
    assert noticed > 20


def told(act):
    """The line with which `act` ends; any other exception is a traceback to its user."""
    try:
        act()
    except TaciturnError as error:
        return str(error)
    return ""


def start(ready):
    """What a site does before it goes on the network."""
    with open_store(ready) as store:
        recall(ready, store, ready.setup(Refusals(), mark=0), {})


def test_a_bit_that_flipped_in_a_stored_frame_is_noticed(begun):
    """After a new certificate the site would sign it again: a second frame of that round."""
    ready, whole, _ = begun
    with closing(sqlite3.connect(whole)) as db:
        kept = dict(db.execute("SELECT key, value FROM records WHERE key IN ('hello', 'message')").fetchall())
    assert kept
    for key, data in kept.items():
        changed = bytearray(data)
        changed[125] ^= 1
        restore(ready.site.database, whole)
        with closing(sqlite3.connect(ready.site.database, isolation_level=None)) as db:
            db.execute("UPDATE records SET value = ? WHERE key = ?", (bytes(changed), key))
        assert "site.sqlite is damaged" in told(lambda: start(ready))


def request_for(folder, name, hosts=("127.0.0.1",)):
    path = folder / "asked.csr"
    path.write_bytes(signing_request(Ed25519PrivateKey.generate(), name, hosts))
    return path


def test_sign_shows_the_requests_and_signs_only_after_confirmation(tmp_path, capsys, monkeypatch):
    Authority.throw_away().save(tmp_path)
    asked = request_for(tmp_path, "beta")
    command = ["site", "sign", str(asked), "--authority", str(tmp_path)]
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody answers
    assert run(command) == 1
    out = capsys.readouterr().out
    key = x509.load_pem_x509_csr(asked.read_bytes()).public_key()
    assert "asks for a certificate for beta, at beta, 127.0.0.1" in out and fingerprint(key) in out
    assert not (tmp_path / "asked.pem").exists()
    assert run([*command, "--yes"]) == 0
    (made,) = load_certificates(tmp_path / "asked.pem")
    assert made.public_key() == key


def fingerprint(key):
    """As `openssl pkey -pubin -outform DER | sha256sum` gives it."""
    from hashlib import sha256

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    digest = sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    return " ".join(digest[k : k + 4] for k in range(0, 64, 4))


def test_sign_creates_no_authority_in_a_mistyped_folder(tmp_path, capsys):
    asked = request_for(tmp_path, "beta")
    assert run(["site", "sign", str(asked), "--authority", str(tmp_path / "mistyped"), "--yes"]) == 1
    assert "has no authority" in capsys.readouterr().err
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.parametrize("name", ["beta\n\x1b[2K\rgamma", "Beta", "", "beta "])
def test_sign_refuses_a_name_that_no_site_can_have(tmp_path, capsys, name):
    Authority.throw_away().save(tmp_path)
    builder = x509.CertificateSigningRequestBuilder()
    subject = [] if not name else [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    builder = builder.subject_name(x509.Name(subject))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("beta")]), critical=False)
    (tmp_path / "a.csr").write_bytes(builder.sign(new_key(tmp_path / "a.key"), None).public_bytes(PEM))
    assert (
        run(["site", "sign", str(tmp_path / "a.csr"), "--authority", str(tmp_path), "--yes"])
        == ExitCode.WRONG_FILES
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert "valid as the name of a site" in line and line.isprintable()
    assert not (tmp_path / "a.pem").exists()


def test_varying_messages_of_a_neighbour_do_not_fill_the_log(caplog):
    refusals = Refusals()
    for k in range(100):
        refusals.explain("beta", "job", f"`C` is {k} in its job, 10.0 in this site's")
    assert 1 <= len(caplog.records) <= 5


def test_escapes_in_a_certificate_name_are_quoted_in_the_log(tmp_path, caplog):
    """The network's authority has certified a name that contains escape sequences."""
    Refusals().refuse("stranger\n\x1b[31m", "stranger", "it is not a neighbour\r and may say nothing")
    assert [record.getMessage().isprintable() for record in caplog.records] == [True]
