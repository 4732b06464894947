"""docs/deploy.md: its commands exist, its TOML is valid, and its messages are in the source."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from taciturn.cli.app import app
from taciturn.jobfile.toml_files import check_entries
from taciturn.sites.files.job import NetworkJob

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "deploy.md").read_text()
TROUBLE = PAGE.split("## When something is wrong")[1].split("\n## ")[0]
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


LINES = {
    "it has a different job",
    "has sent values at the edge of the range",
    "an unauthenticated client",
    "its certificate is not from this network's authority",
    "is not trusted",
    "it is not a neighbour, so its messages are ignored",
    "silent since",
    "and would exceed",
    "`job.seed` must be left out of the job",
    "does not contain this run, which was charged to it",
    "the ledger cannot be used",
    "was not started: the sum of the vectors sent and received so far exceeds",
    "the solver failed in round",
    "it uses version",
    "signed two messages (frames) that contradict each other",
    "another process signs with the name and key of this site",
    "this table was already charged for this job, but that run did not finish",
    "the keys of this attempt are gone",
}


@pytest.mark.parametrize("words", sorted(LINES))
def test_each_line_the_page_explains_is_in_the_source(words):
    assert words in TROUBLE
    text = " ".join(path.read_text() for path in SOURCES.rglob("*.py"))
    assert words in re.sub(r'"\s*\n\s*f?"', "", text)
