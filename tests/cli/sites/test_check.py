"""`taciturn site check` reports each fault and its side before anything is spent."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from support.asked import make_asked, patients
from support.sitecheck import check_both
from support.sitework import TABLE, network, table
from taciturn.cli.app import run
from taciturn.sites.files.keys import Authority, new_key, pem, signing_request
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.watch import own
from taciturn.sites.watch.checkup import neighbours
from taciturn.sites.watch.own import Finding

Capture = pytest.CaptureFixture[str]


def certify(path: Path, authority: Authority, *, days: float = 30.0, hosts=("127.0.0.1",), uses=None) -> None:
    """A new key and certificate for the site in `path`, such as `authority` would not make."""
    name = path.parent.name
    for old in path.parent.glob(f"{name}.*"):
        old.unlink()
    if uses is None:
        request = signing_request(new_key(path.parent / f"{name}.key"), name, hosts)
        (path.parent / f"{name}.pem").write_bytes(pem(authority.sign(request, days=days)))
        return
    key, now = new_key(path.parent / f"{name}.key"), datetime.datetime.now(datetime.UTC)
    request = x509.load_pem_x509_csr(signing_request(key, name, hosts))
    builder = x509.CertificateBuilder().subject_name(request.subject).public_key(request.public_key())
    builder = builder.issuer_name(authority.certificate.subject).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=days))
    builder = builder.add_extension(request.extensions[0].value, critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    (path.parent / f"{name}.pem").write_bytes(pem(builder.sign(authority.key, None)))


def said(path: Path, capsys: Capture, code: int = 1) -> str:
    assert run(["site", "check", str(path), "--wait", "0"]) == code
    return capsys.readouterr().out


def test_a_key_that_others_can_read_is_reported_with_the_command_to_protect_it(tmp_path, capsys):
    path = network(tmp_path)[0]
    key = path.parent / "site-0.key"
    key.chmod(0o640)
    assert f"FAIL  keys: others can read {key} (mode 640); run: chmod 600 {key}" in said(path, capsys)
    key.chmod(0o600)
    assert "others can read" not in said(path, capsys, 0)


@pytest.mark.parametrize(
    ("owner", "group", "mode", "user", "others"),
    [
        (10001, 10001, 0o600, 10001, False),
        (10001, 10001, 0o640, 10001, True),
        (0, 10001, 0o440, 10001, False),  # a Kubernetes secret
        (0, 10001, 0o444, 10001, True),
        (0, 10001, 0o460, 10001, True),
        (0, 5, 0o440, 10001, True),
        (0, 0, 0o640, 0, True),
    ],
)
def test_only_a_secret_of_root_may_be_read_by_the_group(monkeypatch, owner, group, mode, user, others):
    monkeypatch.setattr(own.os, "geteuid", lambda: user)
    monkeypatch.setattr(own.os, "getegid", lambda: user)
    monkeypatch.setattr(own.os, "getgroups", list)
    found = os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
    assert own._open_to_others(found) == others


def test_certificate_that_expires_before_the_run_could_end_is_reported_with_its_date(tmp_path, capsys):
    path = network(tmp_path, site={"patience": 7200.0})[0]
    authority = Authority.load(tmp_path)
    hour = datetime.timedelta(hours=1)
    dates = [datetime.datetime.now(datetime.UTC) + hour]
    certify(path, authority, days=1 / 24)
    dates.append(datetime.datetime.now(datetime.UTC) + hour)
    out = said(path, capsys)
    assert (
        any(f"expires on {ends:%Y-%m-%d}" in out for ends in dates)
        and "in less than `patience` (7200 s)" in out
    )
    certify(path, authority, days=3)
    assert ": soon, in 3.0 days" in said(path, capsys, 0)


def test_certificate_for_another_host_is_reported_on_both_sides(tmp_path, capsys):
    first, second = network(tmp_path, [(0, 1)])
    certify(first, Authority.load(tmp_path), hosts=("elsewhere.example",))
    assert "other sites connect to 127.0.0.1, but the certificate is valid for site-0, elsewhere" in said(
        first, capsys
    )
    words = "FAIL  site-0: the certificate at tls/127.0.0.1:", "IP address mismatch"
    text, _ = check_both(second, first, capsys, words)
    assert all(part in text for part in words)


def test_certificate_without_client_use_is_reported_on_both_sides(tmp_path, capsys):
    first, second = network(tmp_path, [(0, 1)])
    certify(second, Authority.load(tmp_path), uses=[ExtendedKeyUsageOID.SERVER_AUTH])
    assert "FAIL  keys: the certificate does not allow outgoing connections: it lacks clientAuth" in said(
        second, capsys
    )
    words = (
        "an unauthenticated client: its certificate does not allow outgoing connections: it lacks clientAuth",
        "FAIL  site-1: not connected; a client was refused (purpose), see above",
    )
    text, met = check_both(first, second, capsys, words)
    assert all(part in text for part in words)
    assert "reached, with" not in met


def test_different_authority_is_reported_on_both_sides(tmp_path, capsys):
    first, second = network(tmp_path, [(0, 1)])
    other = Authority.throw_away()
    (tmp_path / "other").mkdir()
    other.save(tmp_path / "other")
    shutil.copyfile(tmp_path / "other" / "authority.pem", second.parent / "authority.pem")
    second.write_text(second.read_text().replace("../authority.pem", "authority.pem"))
    certify(second, other)
    words = (
        "it does not accept this site's certificate: its authority differs, or the certificate",
        "FAIL  site-1: not connected; a client was refused (turned down), see above",
    )
    text, met = check_both(first, second, capsys, words, ["is not trusted"])
    assert all(part in text for part in words) and "is not trusted" in met
    prints = [line for line in text.splitlines() if "the authority's fingerprint is" in line]
    assert len(prints) == 1 and prints[0] not in said(second, capsys, 0)


def test_the_fingerprints_of_all_authorities_are_shown(tmp_path, capsys):
    """While the authority changes, its file has two certificates, and both may sign for any site."""
    path = network(tmp_path)[0]
    added = Authority.throw_away()
    with (tmp_path / "authority.pem").open("ab") as file:
        file.write(pem(added.certificate))
    text = said(path, capsys, 0)
    for authority in (Authority.load(tmp_path), added):
        assert f"the authority's fingerprint is {own.fingerprint(authority.certificate)}" in text


def test_different_order_of_sites_is_reported(tmp_path, capsys):
    first, second = network(tmp_path, [(0, 1)])
    text = (tmp_path / "job.toml").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("sites = "))
    entries = line.removeprefix("sites = [").removesuffix("]").split("}, ")
    turned = f"sites = [{entries[1]}, {entries[0]}}}]"
    (second.parent / "job.toml").write_text(text.replace(line, turned))
    second.write_text(second.read_text().replace("../job.toml", "job.toml"))
    assert load_site(second).job.names == ("site-1", "site-0")
    words = "FAIL  site-1: listens, but does not connect to this site: are the `[[sites]]` of both jobs in"
    text, met = check_both(first, second, capsys, [words], ["in the same order?"])
    assert words in text and "in the same order?" in met


def test_loopback_host_is_reported(tmp_path, capsys, monkeypatch):
    path = network(tmp_path)[0]
    path.write_text('listen = "tls/alpha.example:7447"\n' + path.read_text())
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *rest, **options: [entry])
    out = said(path, capsys)
    assert "FAIL  host: alpha.example resolves to 127.0.1.1, which only this machine reaches" in out
    assert 'listen = "tls/0.0.0.0:7447"' in out


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("high", "hihg", "every label that can be read is 'not high'"),
        (",f,", ",?,", "of `sex` do not fit"),
        ("50,f", "500,f", "3 of 6 cells of `age` do not fit: 0 unreadable or unknown, 1 missing, 2 outside"),
    ],
)
def test_rows_that_would_be_zeros_are_counted_for_their_owner(tmp_path, capsys, old, new, line):
    text = TABLE.replace("short,row\n", "20,m,low,x\n").replace("30,x,,", "30,m,low,").replace(old, new)
    site = table(tmp_path, text)
    assert run(["site", "check", str(site.folder / "site.toml"), "--wait", "0"]) in (0, 1)
    out = capsys.readouterr().out
    (found,) = [entry for entry in out.splitlines() if line in entry]
    assert "only for the owner of the rows; never share it: " in found


def test_rows_that_are_all_zeros_fail(tmp_path, capsys):
    site = table(tmp_path, "age,sex,income\n" + "50,f,\n" * 6)
    assert "FAIL  only for the owner of the rows; never share it: 6 of 6 rows become zeros" in said(
        site.folder / "site.toml", capsys
    )


def test_a_check_of_a_site_that_runs_says_so(tmp_path, capsys):
    first, _ = network(tmp_path, [(0, 1)])
    host, port = load_site(first).job.site("site-0").endpoint.removeprefix("tls/").split(":")
    with socket.create_server((host, int(port))):
        assert run(["site", "check", str(first), "--wait", "0.3"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  cannot open the network at tls/127.0.0.1" in out and "is this site already running" in out


def test_a_slow_neighbour_meets_a_site_that_came_long_before(tmp_path, capsys):
    """A site that has met its neighbour waits until the neighbour has met it."""
    first, second = network(tmp_path, [(0, 1)])
    met: list[Finding] = []
    ready = make_ready(load_site(second))
    late = threading.Timer(1.0, lambda: met.extend(neighbours(ready, 300.0)))
    late.start()
    assert run(["site", "check", str(first), "--wait", "300"]) == 0
    late.join()
    assert [finding.good for finding in met] == [True]


def test_check_of_a_job_of_questions_counts_the_cells_that_its_questions_read(tmp_path, capsys):
    table = patients(300)
    table["sex"] = ["f"] * 40 + table["sex"][40:]
    table["pressure"] = ["high"] * 300
    asked = {"kind": "describe", "describe": {"columns": ["age", "sex"]}}
    path = make_asked(tmp_path, [table, patients(300)], job=asked, site={"budget": budget(tmp_path)})[0]
    assert run(["site", "check", str(path), "--wait", "0"]) == 0
    out = capsys.readouterr().out
    assert "data: 300 rows, 2 columns;" in out and "approved by the rules in site.toml" in out
    assert "40 of 300 cells of `sex` do not fit: 40 unreadable or unknown" in out and "pressure" not in out
    path.with_name("rows.csv").write_text(path.with_name("rows.csv").read_text().replace("male", "x"))
    assert run(["site", "check", str(path), "--wait", "0"]) == 1
    assert "FAIL  only for the owner of the rows; never share it: 300 of 300 cells" in capsys.readouterr().out


def test_personalise_is_refused_for_a_job_that_learns_no_model_before_the_run(tmp_path, capsys):
    path = make_asked(tmp_path, [patients(300)], job={"kind": "describe"})[0]
    assert run(["site", "run", str(path), "--personalise"]) == 1
    assert "`--personalise` must be left out: the job asked is of kind 'describe'" in capsys.readouterr().err
    assert not (path.parent / "state").exists()


def test_a_job_that_the_account_cannot_pay_for_still_shows_the_account(tmp_path, capsys):
    poor, noise = budget(tmp_path) | {"epsilon": 0.001}, {"kind": "gaussian", "std": 1e-5}
    path = network(tmp_path, job={"seed": None}, site={"budget": poor, "output_noise": noise})[0]
    out = said(path, capsys)
    assert "ok    account of the table: 0 runs spent epsilon 0, 0.00100 left" in out
    assert "FAIL  account: site site-0 in job" in out and "would exceed a budget" in out


def budget(tmp_path):
    return {"epsilon": 10.0, "large_delta": True, "ledger": str(tmp_path / "account" / "budget.sqlite")}
