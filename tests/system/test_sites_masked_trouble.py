"""What penalty jobs bear, masked jobs bear: a link that is cut, a disk that is full, a site that lies."""

import sqlite3
import time
from contextlib import closing

from support.linkcut import Proxy, until
from support.siteend import charged_rounds, rounds_of
from support.sitemasked import check_masked_end, masked_network
from support.siteprocess import Network, SiteProcess
from support.sitework import PATH_OF_3
from taciturn.errors import ExitCode
from taciturn.sites.files.site import load_site


def test_a_link_that_is_cut_and_healed_costs_time_and_nothing_else(tmp_path):
    paths = masked_network(tmp_path, PATH_OF_3, job={"rounds": 20})
    first = load_site(paths[0])
    proxy = Proxy(int(first.listens().rsplit(":", 1)[1]))
    with paths[1].open("a") as file:
        file.write(f'endpoints = {{ site-0 = "tls/127.0.0.1:{proxy.port}" }}\n')
    running = Network(paths, {0: {"holds": (4, 10)}})
    try:
        for mark, hang_up in ((4, False), (10, True)):
            until((first.folder / "held").exists)
            proxy.cut()
            if hang_up:
                proxy.hang_up()
            (first.folder / f"go-{mark}").touch()
            until(lambda mark=mark: rounds_of(first) >= mark)
            time.sleep(0.5)
            assert rounds_of(first) <= mark + 1  # the others' frames may have come before the cut
            proxy.heal()
        running.finish()
    finally:
        proxy.close()
        running.stop()
    check_masked_end(paths)


def test_a_full_disk_sends_nothing_and_loses_nothing(tmp_path):
    """The key of a message is gone once it is stored: a second one could not be made."""
    paths = masked_network(tmp_path, PATH_OF_3)
    others = [SiteProcess(paths[1]), SiteProcess(paths[2])]
    struck = SiteProcess(paths[0], {"full": True, "t": 3})
    assert struck.wait() == ExitCode.FAILED
    assert "nothing may be released" in struck.text()
    site = load_site(paths[0])
    assert charged_rounds(site) == [1, 2]
    with closing(sqlite3.connect(site.database)) as db:
        assert db.execute("SELECT max(t) FROM outbox").fetchone() == (2,)
    again = SiteProcess(paths[0])
    assert [entry.wait() for entry in (again, *others)] == [0, 0, 0]
    check_masked_end(paths)
