"""Nothing is spent before everybody is there, with the same job."""

import shutil
import sqlite3
from contextlib import closing

from support.linkcut import until
from support.siteend import charged_rounds, check_end
from support.siteprocess import Network
from support.sitework import network
from taciturn.sites.files.site import load_site
from taciturn.sites.wire.form import HELLO

PATH_OF_4 = [(0, 1), (1, 2), (2, 3)]


def said(site, t):
    """Whether a site has said anything in round t."""
    return _count(site, f"SELECT count(*) FROM outbox WHERE t = {t}")


def heard(site):
    """How many frames of others a site has kept."""
    return _count(site, "SELECT count(*) FROM heard")


def _count(site, query):
    try:
        with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchone()[0]
    except sqlite3.OperationalError:  # not begun yet
        return 0


def own_job(path, old, new):
    """Give a site a job.toml of its own, with one change."""
    text = (path.parent.parent / "job.toml").read_text()
    assert old in text
    (path.parent / "job.toml").write_text(text.replace(old, new))
    path.write_text(path.read_text().replace("../job.toml", "job.toml"))


def test_nobody_spends_anything_before_the_last_site_is_there(tmp_path, started):
    """Not even a site whose neighbours are all there: somebody far away is missing."""
    paths = network(tmp_path, PATH_OF_4)
    sites = [load_site(path) for path in paths]
    three = [started(path) for path in paths[:3]]
    until(lambda: said(sites[0], HELLO) and heard(sites[0]) and said(sites[1], HELLO), seconds=60.0)
    assert [charged_rounds(site) for site in sites[:3]] == [[], [], []]
    last = started(paths[3])
    assert [entry.wait() for entry in (*three, last)] == [0, 0, 0, 0]
    check_end(paths)


def test_a_neighbour_with_another_job_is_named_and_nothing_is_spent(tmp_path, started):
    paths = network(tmp_path, [(0, 1)])
    own_job(paths[1], "C = 10.0", "C = 11.0")
    both = [started(path) for path in paths]
    until(lambda: all("it holds another job" in entry.text() for entry in both), seconds=60.0)
    until(lambda: all("another job" in entry.text() and "`C` is" in entry.text() for entry in both))
    assert "`C` is 11.0 there, 10.0 here" in both[0].text()
    assert "`C` is 10.0 there, 11.0 here" in both[1].text()
    assert all("silent" not in entry.text() for entry in both)
    assert [charged_rounds(load_site(path)) for path in paths] == [[], []]
    for entry in both:
        entry.kill()
    own_job(paths[1], "C = 10.0", "C = 10.0")
    shutil.rmtree(load_site(paths[1]).state)  # begun for the other job, and nothing in it was spent
    Network(paths).finish()
    check_end(paths)


def test_keys_with_their_usual_values_are_the_same_job(tmp_path, started):
    """One side spells out what the other leaves to its default; a third writes the same numbers otherwise."""
    paths = network(tmp_path, [(0, 1)])
    own_job(paths[1], "C = 10.0", 'C = 10\nmethod = "penalty"\nintercept = false')
    both = [started(path) for path in paths]
    assert [entry.wait() for entry in both] == [0, 0]
    check_end(paths)


def test_a_release_that_hashes_jobs_otherwise_says_so(tmp_path, started):
    paths = network(tmp_path, [(0, 1)])
    both = [started(paths[0]), started(paths[1], {"hash_form": 3})]
    until(lambda: "its release writes jobs in form 3, this one in form 2" in both[0].text(), seconds=60.0)
