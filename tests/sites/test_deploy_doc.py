"""docs/deploy.md: its commands exist, its TOML is valid, and the lines it explains are really said."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from taciturn.cli.app import app
from taciturn.sites.files.job import NetworkJob
from taciturn.sites.files.toml import check_entries

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "deploy.md").read_text()
SOURCES = Path(__file__).resolve().parents[2] / "src" / "taciturn"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.S)


COMMANDS = [
    line.split("#")[0].strip()
    for block in blocks("sh")
    for line in block.splitlines()
    if line.startswith("taciturn site")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_exists_with_its_options(line):
    words = shlex.split(line)
    command = typer.main.get_command(app).commands["site"].commands[words[2]]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_job_is_valid():
    job = check_entries(Path("deploy.md"), NetworkJob, tomllib.loads(blocks("toml")[0]))
    assert job.names == ("alpha", "beta") and job.dimension == 5


@pytest.mark.parametrize("text", blocks("toml")[1:])
def test_the_other_pieces_are_toml(text):
    assert tomllib.loads(text)


@pytest.mark.parametrize(
    "words",
    [
        "it holds another job",
        "a caller without a name",
        "its certificate is not from this network's authority",
        "it is not a neighbour and may say nothing",
        "silent since",
        "past its budget",
        "signed two frames that contradict each other",
        "reached, with its own certificate and the same job",
        "was not begun: what was sent and heard has added up to more than",
        "gave up, and the run ends here",
        "`job.seed`: must be left out of the job",
        "does not hold this run, which was charged to it",
    ],
)
def test_the_lines_it_explains_are_really_said(words):
    assert words in PAGE
    text = " ".join(path.read_text() for path in SOURCES.rglob("*.py"))
    assert words in text
