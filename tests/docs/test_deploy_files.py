"""Promises of `deploy/` and the workflows: no root, pinned hashes, publishing switched off."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.cli.app import run

yaml = pytest.importorskip("yaml", reason="the extra `docs` is not installed")
ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def test_every_dependency_of_the_image_is_pinned_by_hash_to_the_tested_version():
    text = (DEPLOY / "requirements.txt").read_text("utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+) \\$", text, re.MULTILINE))
    hashes = re.findall(r"^[\w.-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    tested = {
        name.lower().replace("_", "-"): version
        for name, version in re.findall(
            r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.M
        )
    }
    assert len(hashes) == len(pinned) > 20
    assert {name: tested.get(name, version) for name, version in pinned.items()} == pinned
    assert {"numpy", "eclipse-zenoh", "cryptography"} <= pinned.keys()
    assert "--require-hashes" in (DEPLOY / "Containerfile").read_text("utf-8")


def test_containers_run_without_root_on_a_read_only_file_system():
    lines = (DEPLOY / "Containerfile").read_text("utf-8").splitlines()
    assert "USER 10001:10001" in lines and any(line.startswith("HEALTHCHECK") for line in lines)
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    assert len(services) == 3
    for name, service in services.items():
        assert service["read_only"] and service["user"] == "10001:10001" and service["cap_drop"] == ["ALL"]
        assert f"{name}:/var/lib/taciturn" in service["volumes"]


@pytest.mark.process
@pytest.mark.slow
def test_the_folders_of_the_trial_are_ready_to_run(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "sites"
    own = Path(sys.executable).parent
    env = os.environ | {"PATH": f"{own}:{os.environ['PATH']}"}
    hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    subprocess.run(["sh", DEPLOY / "trial.sh", folder, *hosts], env=env, check=True, capture_output=True)
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    for name, service in services.items():
        assert service["volumes"][0] == f"./sites/{name}:/site:ro"
        site = folder / name / "site.toml"
        text = site.read_text()
        assert 'state = "/var/lib/taciturn/state"' in text
        site.write_text(text.replace("/var/lib/taciturn/state", str(tmp_path / name)))
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / f"share-{name}"))
        assert run(["site", "check", str(site), "--wait", "0"]) == 0, capsys.readouterr()
        assert "approval: approved by the rules" in capsys.readouterr().out


def test_kubernetes_keeps_one_copy_its_keys_in_memory_and_its_certificate_in_a_secret():
    text = (DEPLOY / "kubernetes" / "site.yaml").read_text("utf-8")
    _, stateful = yaml.safe_load_all(text)
    spec = stateful["spec"]
    pod = spec["template"]["spec"]
    assert (
        stateful["kind"] == "StatefulSet" and spec["replicas"] == 1 and pod["securityContext"]["runAsNonRoot"]
    )
    container = pod["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert volumes["volatile"]["emptyDir"]["medium"] == "Memory" and mounts["volatile"] == "/run/taciturn"
    assert "secret" in volumes["keys"]
    assert spec["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_a_release_is_tried_on_three_pythons_and_published_only_if_switched_on():
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    assert release["wheel"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert release["publish"]["needs"] == "wheel" and "vars.PUBLISH == 'yes'" in release["publish"]["if"]
    assert release["publish"]["permissions"] == {"id-token": "write"}


def test_version_is_the_same_everywhere():
    version = re.search(r'VERSION = "(.+)"', (ROOT / "src/taciturn/core/versions.py").read_text("utf-8"))[1]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == version and f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
