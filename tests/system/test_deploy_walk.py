"""Every command of docs/deploy.md, on two machines (network namespaces) of Ann and Ben."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.linkcut import Cable, cable, why_no_namespaces
from taciturn.cli.app import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
LINES = [
    re.sub(r"\s+#.*", "", line).strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.S)
    for line in block.replace("\\\n", "").splitlines()
]
ELSEWHERE = (  # what other tests run, or no test may
    "pip install",
    "taciturn plan",  # tests/cli/test_plan.py
    "taciturn site up",  # tests/cli/sites/test_up.py
    "openssl ",  # tests/cli/sites/test_kit.py
    "printf ",
    "taciturn site kit",
    "taciturn site keys site.toml --self-signed",  # tests/cli/sites/test_kit.py
    "taciturn site relay",  # tests/system/test_sites_relay.py
    "taciturn site status site.toml --page",  # tests/cli/sites/test_run.py: it would not end
    "taciturn site finish",  # tests/system/test_sites_finish.py
    "taciturn site verify --proof",  # tests/system/test_sites_proof.py
    "taciturn site verify stopped.json",
)
ROWS = "age,ward,readmitted\n" + "50,surgery,yes\n71,medicine,no\n34,other,no\n" * 400


class Walk:
    """Runs lines of the page, each as it stands, and knows which are left."""

    def __init__(self, names: tuple[str, str], monkeypatch, capsys) -> None:
        self.names, self.left = names, [line for line in LINES if not line.startswith(ELSEWHERE)]
        self.patch, self.capsys = monkeypatch, capsys

    def here(self, folder: Path, line: str, answer: str = "") -> str:
        """A line that needs no network."""
        self._pass(line)
        self.patch.chdir(folder)
        self.patch.setenv("XDG_DATA_HOME", str(folder / "share"))  # each has a machine of its own
        self.patch.setattr(sys, "stdin", io.StringIO(answer))
        assert run(shlex.split(line.partition(" > ")[0])[1:]) == 0, self.capsys.readouterr().err
        return str(self.capsys.readouterr().out)

    def there(self, folders: tuple[Path, Path], line: str) -> list[str]:
        """A line that both run at the same time, each on its own machine."""
        self._pass(line)
        started = [
            subprocess.Popen(
                ["ip", "netns", "exec", name, sys.executable, "-m", *shlex.split(line)],
                cwd=folder,
                env=os.environ | {"XDG_DATA_HOME": str(folder / "share")},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for name, folder in zip(self.names, folders, strict=True)
        ]
        said = [process.communicate(timeout=600)[0] for process in started]
        assert [process.returncode for process in started] == [0, 0], "\n".join(said)
        return said

    def _pass(self, line: str) -> None:
        assert line in LINES, line
        if line in self.left:
            self.left.remove(line)


@pytest.fixture
def machines():
    """Two namespaces that know each other by the names of the page."""
    if (why := why_no_namespaces()) is not None:
        pytest.skip(why)
    with cable() as line:
        places = [Path("/etc/netns") / name for name in line.names]
        try:
            for place in places:
                place.mkdir(parents=True)
                known = zip(Cable.HOSTS, ("alpha.example", "beta.example"), strict=True)
                (place / "hosts").write_text("".join(f"{host} {name}\n" for host, name in known))
            yield line.names
        finally:
            for place in places:
                shutil.rmtree(place, ignore_errors=True)


def test_every_command_of_the_deploy_page_works_from_empty_folders_to_a_verified_statement(
    tmp_path, machines, monkeypatch, capsys
):
    walk = Walk(machines, monkeypatch, capsys)
    ann, ben = tmp_path / "ann", tmp_path / "ben"
    for person in (ann, ben):
        person.mkdir()
    walk.here(ann, "taciturn site init alpha-site --name alpha")
    alpha, beta = ann / "alpha-site", ben / "beta-site"
    (alpha / "job.toml").write_text(re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S)[0])
    beta.mkdir()
    shutil.copy(alpha / "job.toml", beta)
    walk.here(ben, "taciturn site init beta-site --name beta")
    for folder, rows in ((alpha, 1200), (beta, 900)):
        (folder / "rows.csv").write_text("\n".join(ROWS.splitlines()[: rows + 1]) + "\n")
        file = folder / "site.toml"
        file.write_text(file.read_text().replace('"rows.npz"', '"rows.csv"'))
    read = walk.here(beta, "taciturn site keys site.toml")
    walk.here(alpha, "taciturn site keys site.toml --throw-away ../authority --new-authority")
    shutil.copy(beta / "beta.csr", alpha)
    shown = walk.here(alpha, "taciturn site sign beta.csr --authority ../authority --out beta.pem", "y\n")
    fingerprint = re.search(r"telephone: ([0-9a-f ]+)", read)
    assert fingerprint is not None and fingerprint[1].strip() in shown
    for name in ("beta.pem", "authority.pem"):
        shutil.copy(alpha / name, beta)
    (alpha / "beta.pem").unlink()
    checked = walk.there((alpha, beta), "taciturn site check site.toml --wait 60")
    assert "beta: reached, with its own certificate and the same job" in checked[0]
    assert "alpha: reached" in checked[1] and "FAIL" not in "".join(checked)
    for folder in (alpha, beta):
        walk.here(folder, "taciturn site approve site.toml --yes")
    walk.there((alpha, beta), "taciturn site run site.toml")
    assert "finished" in walk.here(alpha, "taciturn site status site.toml")
    models = {(folder / "state" / "model.json").read_bytes() for folder in (alpha, beta)}
    assert len(models) == 1
    (alpha / "new.csv").write_text("age,ward\n50,surgery\n")
    walk.here(alpha, "taciturn predict state/model.json new.csv")
    for name in ("statement.json", "certificate.json", "model.json"):  # Ben's, which Ann checks
        shutil.copy(beta / "state" / name, alpha)
    said = walk.here(alpha, "taciturn site verify statement.json --authority authority.pem")
    assert "signed by beta: 20 rounds of first-run, a real run" in said
    assert "ExecStart=" in walk.here(alpha, "taciturn site unit site.toml > taciturn-alpha.service")
    assert walk.left == []
