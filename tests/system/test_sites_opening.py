"""Nothing is spent before all sites are connected with the same job: five sites, and twenty."""

import datetime
import shutil
import types

import pytest

from support.linkcut import until
from support.siteend import charged_rounds, check_end
from support.sitering import greeted, lose_file
from support.sitework import network
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode
from taciturn.sites.files.job import HASH_FORM
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire import trust

WAYS = {
    "folder": lambda site: shutil.rmtree(site.state),
    "file": lose_file,
    "empty": lambda site: lose_file(site, empty=True),
}


def own_job(path, old, new):
    """Give a site a job.toml of its own, with one change."""
    text = (path.parent.parent / "job.toml").read_text()
    assert old in text
    (path.parent / "job.toml").write_text(text.replace(old, new))
    path.write_text(path.read_text().replace("../job.toml", "job.toml"))


def differ(ring, far):
    """One site has another C, the first one comes from another release: both sides of a link say so."""
    own_job(ring.paths[far], "C = 10.0", "C = 11.0")
    ring.start(*range(1, len(ring.paths)))
    ring.start(0, hash_form=HASH_FORM + 1)
    here, there = (f"`C` is {a} in its job, {b} in this site's" for a, b in ((11.0, 10.0), (10.0, 11.0)))
    forms = [HASH_FORM, HASH_FORM + 1]
    older, newer = (
        f"its release writes jobs in format {a}, this release in format {b}" for a, b in (forms, forms[::-1])
    )
    said = [(far - 1, here), (far, there), (far + 1, here), (0, older), (1, newer), (-1, newer)]
    for i, words in said:
        number = i % len(ring.paths)
        until(lambda number=number, words=words: words in ring.text(number))
    assert "silent" not in ring.logs()
    assert ring.charged() == [[]] * len(ring.paths)
    for i in (0, far):
        ring.kill(i)
        shutil.rmtree(ring.sites[i].state)  # begun for another job, and nothing in it was spent
    ring.paths[far].write_text(ring.paths[far].read_text().replace('"job.toml"', '"../job.toml"'))
    ring.start(0)


def lose_state(ring, i):
    """A site says hello, loses its state and says hello again, three times."""
    site = ring.sites[i]
    for spoil in WAYS.values():
        until(lambda: greeted(site))
        ring.kill(i)
        spoil(site)
        ring.start(i)


def later_than_all(monkeypatch):
    """Certificates are checked as of the day after tomorrow."""

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.now(tz) + datetime.timedelta(days=2)

    monkeypatch.setattr(trust, "datetime", types.SimpleNamespace(datetime=Later, UTC=datetime.UTC))


def check_statements(ring, folder, capsys):
    """`site verify` takes each as of the day it was signed, and none beside another's certificate."""
    authority = ["--authority", str(folder / "authority.pem")]
    assert run(["site", "verify", str(ring.sites[1].state / "statement.json"), *authority]) == 0
    for site in ring.sites:
        facts = verify_statement(site.state / "statement.json", trust.load_trust(folder / "authority.pem"))
        assert facts["rounds"] == site.job.rounds == len(charged_rounds(site))
    mixed = folder / "mixed"
    shutil.copytree(ring.sites[0].state, mixed)
    shutil.copy(ring.sites[1].state / "certificate.json", mixed)
    capsys.readouterr()
    assert run(["site", "verify", str(mixed / "statement.json"), *authority]) == ExitCode.WRONG_FILES
    assert "certificate.json has another hash than statement.json states" in capsys.readouterr().err


@pytest.mark.parametrize(("size", "kind"), [(5, "penalty"), (5, "masked"), (20, "masked")])
def test_nothing_is_spent_before_all_sites_agree_on_the_job(
    tmp_path, ring_of, size, kind, monkeypatch, capsys
):
    """A different C, a different release, or a state that is lost three times costs nothing.

    A site spends nothing even if all its neighbours are connected but a distant site is missing.
    """
    ring = ring_of(size, kind, rounds=3)
    ring.shorten_certificate(1)
    differ(ring, size // 2)
    lose_state(ring, size - 1)
    assert ring.charged() == [[]] * size
    ring.start(size // 2)
    assert ring.codes() == [0] * size, ring.logs()
    assert ring.charged() == [[1, 2, 3]] * size
    assert len({(site.state / "model.json").read_bytes() for site in ring.sites}) == 1
    later_than_all(monkeypatch)
    check_statements(ring, tmp_path / "net", capsys)


def test_keys_with_their_usual_values_are_the_same_job(tmp_path, started):
    """One site writes out the defaults of another; a third writes the same numbers differently."""
    paths = network(tmp_path, [(0, 1)])
    own_job(paths[1], "C = 10.0", 'C = 10\nmethod = "penalty"\nintercept = false')
    both = [started(path) for path in paths]
    assert [entry.wait() for entry in both] == [0, 0]
    check_end(paths)
