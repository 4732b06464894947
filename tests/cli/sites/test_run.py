"""`taciturn site`: from two empty folders to a checked pair of sites, without spending anything."""

from __future__ import annotations

import io
import json
import logging
import stat
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from support.sitecheck import check_both
from support.sitestore import charge_round, open_store
from support.sitework import network, shards
from taciturn.cli.app import run
from taciturn.cli.sites.logs import log_to_stderr
from taciturn.core.errors import ExitCode
from taciturn.core.formatting import format_cost
from taciturn.sites.files.keys import Authority
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.trial.rehearsal import free_ports, issue
from taciturn.sites.watch.checkup import neighbours
from taciturn.sites.watch.own import Finding
from taciturn.sites.watch.serving import open_server
from taciturn.sites.watch.status import pages, read_status
from taciturn.sites.wire.whereabouts import Whereabouts, write_seen

Capture = pytest.CaptureFixture[str]


def test_init_writes_a_pair_that_is_valid_as_it_stands(tmp_path: Path, capsys: Capture) -> None:
    assert run(["site", "init", str(tmp_path / "a"), "--name", "beta"]) == 0
    site = load_site(tmp_path / "a" / "site.toml")
    assert site.name == "beta" and site.neighbours == ("alpha",) and not site.job.simulated
    assert "taciturn site keys" in capsys.readouterr().out
    assert run(["site", "init", str(tmp_path / "a")]) == 1
    assert "never overwritten" in capsys.readouterr().err


def test_two_people_make_keys_and_have_them_signed(tmp_path: Path, capsys: Capture) -> None:
    for name in ("alpha", "beta"):
        assert run(["site", "init", str(tmp_path / name), "--name", name]) == 0
    alpha, beta, authority = tmp_path / "alpha", tmp_path / "beta", tmp_path / "authority"
    assert run(["site", "keys", str(alpha / "site.toml"), "--throw-away", str(authority)]) == 1
    assert "has no authority" in capsys.readouterr().err and not authority.exists()
    made = ["--throw-away", str(authority), "--new-authority"]
    assert run(["site", "keys", str(alpha / "site.toml"), *made]) == 0
    again = ["--throw-away", str(tmp_path / "second"), "--new-authority"]
    assert run(["site", "keys", str(alpha / "site.toml"), *again]) == 1
    assert "alpha.key exists already" in capsys.readouterr().err and not (tmp_path / "second").exists()
    assert run(["site", "keys", str(beta / "site.toml"), "--host", "10.0.0.7"]) == 0
    assert stat.S_IMODE((beta / "beta.key").stat().st_mode) == 0o600
    signed = ["site", "sign", str(beta / "beta.csr"), "--authority", str(authority)]
    assert run([*signed, "--yes", "--out", str(beta / "beta.pem")]) == 0
    assert "for beta, serial" in capsys.readouterr().out
    (beta / "authority.pem").write_bytes((authority / "authority.pem").read_bytes())
    for folder in (alpha, beta):
        rows = shards(1, rows=1000, d=10)[0]
        np.savez(folder / "rows.npz", X=rows[0], y=rows[1])
        make_ready(load_site(folder / "site.toml"))


def test_check_says_what_the_run_will_cost_and_spends_nothing(tmp_path: Path, capsys: Capture) -> None:
    paths = network(tmp_path)
    assert run(["site", "check", str(paths[0]), "--wait", "0"]) == 0
    out = capsys.readouterr().out
    forecast = make_ready(load_site(paths[0])).forecast()
    cost = f"epsilon {format_cost(forecast.epsilon)} at delta 1e-05"
    assert f"without a seed, all 5 rounds would cost {cost}" in out
    assert "24 rows, 4 features" in out and "nothing is private" in out
    assert not load_site(paths[0]).state.exists()


def test_check_fails_where_the_budget_is_too_small(tmp_path: Path, capsys: Capture) -> None:
    paths = network(tmp_path, site={"budget": {"epsilon": 3.0}})
    assert run(["site", "check", str(paths[0]), "--wait", "0"]) == 1
    assert "FAIL  the budget does not pay for the job" in capsys.readouterr().out
    assert run(["site", "run", str(paths[0])]) == ExitCode.BUDGET_SPENT


def test_two_sites_check_each_other_before_either_has_started(tmp_path: Path, capsys: Capture) -> None:
    first, second = network(tmp_path, [(0, 1)])
    met: list[Finding] = []
    ready = make_ready(load_site(second))
    other = threading.Thread(target=lambda: met.extend(neighbours(ready, 300.0)))
    other.start()
    assert run(["site", "check", str(first), "--wait", "300"]) == 0
    other.join()
    assert "site-1: reached, with its own certificate and the same job" in capsys.readouterr().out
    assert [finding.good for finding in met] == [True]


def test_check_names_a_neighbour_with_another_job(tmp_path: Path, capsys: Capture) -> None:
    first, second = network(tmp_path, [(0, 1)])
    job = second.parent / "job.toml"
    job.write_text((tmp_path / "job.toml").read_text().replace("rounds = 5", "rounds = 6"))
    second.write_text(second.read_text().replace("../job.toml", "job.toml"))
    words = "FAIL  site-1: reached, but refused (job)", "refused data from site-1: it has a different job"
    text, _ = check_both(first, second, capsys, words)
    assert all(part in text for part in words)


def test_check_reports_unreachable_neighbours(tmp_path: Path, capsys: Capture) -> None:
    first, second = network(tmp_path, [(0, 1)])
    assert run(["site", "check", str(second), "--wait", "0.3"]) == 1
    assert "cannot be reached" in capsys.readouterr().out
    assert run(["site", "check", str(first), "--wait", "0.3"]) == 1
    assert "has not connected to this site" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--page", "--json"], ["--port", "8080"], ["--page", "--port", "65536"]])
def test_status_refuses_options_that_would_have_no_effect(
    tmp_path: Path, capsys: Capture, options: list[str]
) -> None:
    path = network(tmp_path)[0]
    assert run(["site", "status", str(path), *options]) == 2
    assert options[-2 if "--port" in options else -1] in capsys.readouterr().err


def test_status_before_and_in_the_middle_of_a_run(tmp_path: Path, capsys: Capture) -> None:
    path = network(tmp_path)[0]
    assert run(["site", "status", str(path)]) == 1
    assert "has not been started" in capsys.readouterr().err
    ready = make_ready(load_site(path))
    with open_store(ready) as store:
        charge_round(ready, store, 1)
        where = Whereabouts(0, ready.site.job.names)
        where.be(1, ["site-2"], since=5e8)
        write_seen(ready.site.state, where, {})
        assert run(["site", "status", str(path), "--json"]) == 0  # beside the process that holds the file
        facts = json.loads(capsys.readouterr().out)
    assert facts["released"] == 1 and facts["completed"] == 0 and not facts["finished"]
    assert 0 < facts["epsilon"] and facts["left"] == pytest.approx(1000 - facts["epsilon"])
    assert run(["site", "status", str(path)]) == 0
    out = capsys.readouterr().out
    assert "round 0 of 5 complete, 1 released" in out and "site-2: not heard yet; silent since" in out


def test_status_page_is_served_on_loopback_only(tmp_path: Path) -> None:
    path = network(tmp_path)[0]
    site = load_site(path)
    ready = make_ready(site)
    with open_store(ready) as store:
        charge_round(ready, store, 1)
    with open_server(pages(lambda: read_status(site)), "127.0.0.1:0") as server:
        assert server.server_address[0] == "127.0.0.1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            with urllib.request.urlopen(f"{url}/") as answer:
                text = answer.read().decode()
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "site-0 in the job trial (simulated)" in text and "round 0 of 5 complete" in text
            with urllib.request.urlopen(f"{url}/status.json") as answer:
                assert json.loads(answer.read())["site"] == "site-0"
            for request in (
                urllib.request.Request(f"{url}/", headers={"Host": "evil.example"}),
                urllib.request.Request(f"{url}/../site.toml"),
            ):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(request)
                assert refused.value.code in (403, 404)
                refused.value.close()
        finally:
            server.shutdown()
            thread.join()


def test_a_relay_prints_its_configuration(tmp_path: Path, capsys: Capture) -> None:
    endpoint = f"tls/127.0.0.1:{free_ports(1)[0]}"
    network(tmp_path, job={"relay": {"name": "relay", "endpoint": endpoint}})
    issue(Authority.load(tmp_path), tmp_path, "relay", ["127.0.0.1"])

    def words(name: str) -> list[str]:
        keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "authority.pem"}
        return [word for key, file in keys.items() for word in (f"--{key}", str(tmp_path / file))]

    assert run(["site", "relay", str(tmp_path / "job.toml"), *words("relay"), "--config"]) == 0
    assert json.loads(capsys.readouterr().out)["listen"]["endpoints"] == [endpoint]
    assert run(["site", "relay", str(tmp_path / "job.toml"), *words("site-0/site-0"), "--config"]) == 6
    assert "certificate is that of 'site-0'" in capsys.readouterr().err


def test_without_the_extra_the_error_gives_the_command_to_install_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = network(tmp_path)[0]
    for name in [name for name in sys.modules if name.startswith("taciturn.sites.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "zenoh", None)
    assert run(["site", "run", str(path)]) == 1
    assert (
        capsys.readouterr().err
        == "taciturn: `eclipse-zenoh` is not installed; run: pip install 'taciturn[zenoh]'\n"
    )


@pytest.mark.parametrize("command", ["check", "run", "status", "keys", "unit"])
def test_a_missing_file_is_one_clear_line(tmp_path: Path, capsys: Capture, command: str) -> None:
    assert run(["site", command, str(tmp_path / "site.toml")]) == ExitCode.WRONG_FILES
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "site.toml cannot be read" in err


def test_log_goes_to_the_standard_error_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress bar replaces sys.stderr; lines written past it would end up inside the bar."""
    log_to_stderr()
    monkeypatch.setattr("sys.stderr", shown := io.StringIO())
    logging.getLogger("taciturn.site").info("waiting for beta")
    assert shown.getvalue().endswith("waiting for beta\n")
