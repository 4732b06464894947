"""The kit of each party: folders from one job, a key for a relay, and an authority made by openssl."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from taciturn.cli.app import run
from taciturn.core.errors import SiteError
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.watch import own
from taciturn.sites.wire.trust import load_identity, load_trust

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "deploy.md").read_text(encoding="utf-8")
JOB = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S)[0]
RECIPE = next(
    block for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.S) if "openssl genpkey" in block
)
RELAY = 'relay = { name = "relay", endpoint = "tls/relay.example:7447" }\n'
ROWS = "age,ward,readmitted\n" + "50,surgery,yes\n71,medicine,no\n34,other,no\n" * 400


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """The job of the page, with a relay, as a folder for every party."""
    job = tmp_path / "job.toml"
    job.write_text(JOB.replace("links = ", f"{RELAY}links = "))
    assert run(["site", "kit", str(job), str(tmp_path / "kit")]) == 0
    for name, samples in (("alpha", 1200), ("beta", 900)):
        (tmp_path / "kit" / name / "rows.csv").write_text("\n".join(ROWS.splitlines()[: samples + 1]) + "\n")
    return tmp_path / "kit"


def test_kit_has_a_folder_for_every_party_and_no_private_keys(kit: Path, capsys) -> None:
    assert sorted(path.name for path in kit.iterdir()) == ["alpha", "beta", "relay"]
    assert not list(kit.rglob("*.key")) and not list(kit.rglob("*.pem"))
    site = load_site(kit / "beta" / "site.toml")
    assert site.name == "beta" and site.job.hash.hex()[:16] in (kit / "beta" / "STEPS.txt").read_text()
    assert run(["site", "kit", str(kit / "beta" / "job.toml"), str(kit / "again")]) == 0
    assert f"telephone: {site.job.hash.hex()[:16]}" in capsys.readouterr().out
    assert run(["site", "kit", str(kit / "beta" / "job.toml"), str(kit)]) == 1
    assert "never overwritten" in capsys.readouterr().err


def test_a_kit_or_a_template_that_would_replace_a_file_writes_nothing(tmp_path: Path, capsys) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "kit" / "beta").mkdir(parents=True)
    (tmp_path / "kit" / "beta" / "site.toml").write_text("mine")
    assert run(["site", "kit", str(tmp_path / "job.toml"), str(tmp_path / "kit")]) == 1
    assert [path.name for path in (tmp_path / "kit").rglob("*")] == ["beta", "site.toml"]
    assert run(["site", "init", str(tmp_path / "kit" / "beta")]) == 1
    assert not (tmp_path / "kit" / "beta" / "job.toml").exists()
    assert "never overwritten" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["münchen.example", "", "a b", "x" * 300])
def test_a_host_that_no_certificate_can_state_is_refused_before_a_key_is_written(kit, host, capsys) -> None:
    before = sorted(kit.rglob("*"))
    for command in (["keys", str(kit / "alpha" / "site.toml")], ["relay-keys", str(kit / "relay/job.toml")]):
        assert run(["site", *command, "--host", host]) == 1
        assert "taciturn: `--host` must be an address or a host name" in capsys.readouterr().err
    assert sorted(kit.rglob("*")) == before


def test_relay_keys_write_no_key_if_the_request_exists(kit: Path) -> None:
    (kit / "relay" / "relay.csr").write_text("mine")
    assert run(["site", "relay-keys", str(kit / "relay" / "job.toml")]) == 1
    assert not (kit / "relay" / "relay.key").exists()


def test_the_pages_own_example_passes_its_own_check(kit: Path, capsys) -> None:
    """Both sites use the settings and the budget that the kit writes."""
    authority = str(kit / "authority")
    for k, name in enumerate(("alpha", "beta")):
        file = str(kit / name / "site.toml")
        new = ["--new-authority"] if k == 0 else []
        assert run(["site", "keys", file, "--throw-away", authority, *new]) == 0
        path = Path(file)
        path.write_text(path.read_text().replace("# listen = ", "listen = ", 1))
        assert run(["site", "check", file, "--wait", "0"]) == 0, capsys.readouterr().out
        out = capsys.readouterr().out
        assert "FAIL" not in out and "note  approval: site.toml has no rules" in out
        if name == "alpha":
            said = re.search(r"all 20 rounds cost epsilon \S+ at delta 1e-05 for any one record", out)
            assert said is not None and said[0] in PAGE


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.process
def test_an_authority_made_by_openssl_as_the_page_says_signs_sites_and_a_relay(kit: Path, capsys) -> None:
    version = subprocess.run(["openssl", "version"], capture_output=True, text=True).stdout
    if int(version.split()[1].split(".")[0]) < 3:
        pytest.skip("the recipe needs OpenSSL 3, which can copy extensions")
    assert run(["site", "keys", str(kit / "alpha" / "site.toml")]) == 0
    assert run(["site", "relay-keys", str(kit / "relay" / "job.toml")]) == 0
    assert capsys.readouterr().out.count("fingerprint of the key") == 2
    ours = kit / "ours"
    ours.mkdir()
    for name in ("alpha", "relay"):
        shutil.copy(kit / name / f"{name}.csr", ours)
    done = subprocess.run(["sh", "-e", "-c", RECIPE], cwd=ours, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = RECIPE.splitlines()[-2:]  # what signs one request, for the other
    assert "alpha.csr" in again[0]
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(again).replace("alpha", "relay")],
        cwd=ours,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name in ("alpha", "relay"):
        shutil.copy(ours / f"{name}.pem", kit / name)
        shutil.copy(ours / "authority.pem", kit / name)
    ready = make_ready(load_site(kit / "alpha" / "site.toml"))
    assert all(finding.good for finding in own.keys(ready)), list(own.keys(ready))
    trust = load_trust(kit / "relay" / "authority.pem")
    load_identity(kit / "relay" / "relay.key", kit / "relay" / "relay.pem", "relay", trust)


def test_a_masked_kit_leaves_out_what_the_job_fixes(tmp_path: Path) -> None:
    text = "\n".join(
        line for line in JOB.splitlines() if not line.startswith(("dual_step", "clip", "grid", "tol"))
    )
    job = tmp_path / "job.toml"
    job.write_text(
        text.replace("rounds = 20", 'method = "masked"\nepsilon = 1.0\ncolluding = 0\nrounds = 21')
    )
    assert run(["site", "kit", str(job), str(tmp_path / "kit")]) == 0
    site = load_site(tmp_path / "kit" / "alpha" / "site.toml")
    assert site.job.method == "masked" and site.file.noise is None


def test_a_kit_for_a_job_with_a_seed_says_what_it_is_and_agrees_to_nothing(tmp_path: Path) -> None:
    for name, text in (("real", JOB), ("seeded", f"seed = 1\n{JOB}")):
        (tmp_path / f"{name}.toml").write_text(text)
        assert run(["site", "kit", str(tmp_path / f"{name}.toml"), str(tmp_path / name)]) == 0
        folder = tmp_path / name / "alpha"
        assert ("nothing is private" in (folder / "STEPS.txt").read_text()) == (name == "seeded")
    load_site(tmp_path / "real" / "alpha" / "site.toml")
    with pytest.raises(SiteError, match="rehearsal = true"):
        load_site(folder / "site.toml")


def test_a_job_without_a_relay_has_no_key_for_one(tmp_path: Path, capsys) -> None:
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    assert run(["site", "relay-keys", str(job)]) == 1
    assert "has no `relay`" in capsys.readouterr().err and not list(tmp_path.glob("*.key"))


def test_a_key_of_ones_own_is_listed_in_the_job(kit: Path, capsys) -> None:
    """Each site signs for itself; the printed lines go into the job, all certificates into one file."""
    parties = [kit / name for name in ("alpha", "beta")]
    text = re.sub(r"^relay = .*\n", "", (kit / "alpha" / "job.toml").read_text(), flags=re.M)
    bundle = b""
    for party in parties:
        assert run(["site", "keys", str(party / "site.toml"), "--self-signed"]) == 0
        line = re.search(r'^  (key = "[0-9a-f-]+")$', capsys.readouterr().out, flags=re.M)
        assert line is not None
        text = text.replace(f'name = "{party.name}"\n', f'name = "{party.name}"\n{line[1]}\n')
        bundle += (party / f"{party.name}.pem").read_bytes()
    for party in parties:
        (party / "job.toml").write_text(text)
        (party / "authority.pem").write_bytes(bundle)
        ready = make_ready(load_site(party / "site.toml"))
        assert list(ready.site.job.keys) == ["alpha", "beta"]
        said = [finding.text for finding in own.keys(ready)]
        assert f"this site's key is {ready.site.job.keys[party.name]}, as the job lists it" in said[0]
    (kit / "beta" / "job.toml").write_text(text.replace("key = ", "# key = ", 1))
    assert run(["site", "check", str(kit / "beta" / "site.toml"), "--wait", "0"]) == 6
    assert "`sites.key` must be given for every site" in capsys.readouterr().err
