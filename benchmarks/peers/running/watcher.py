"""Record when the rounds of a taciturn site complete: python -m ...running.watcher SITE.TOML"""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from marks import mark  # from the folder of the adapters, which is on the path

from taciturn.sites.files.site import load_site

LOOK = 0.002  # seconds between two looks; a round may take only a few times as long


def main() -> None:
    """Record every round until the last one."""
    site = load_site(Path(sys.argv[1]))
    while not site.database.exists():
        time.sleep(LOOK)
    last = 0
    with closing(sqlite3.connect(f"{site.database.as_uri()}?mode=ro", uri=True)) as db:
        while last < site.job.rounds:
            time.sleep(LOOK)
            try:
                row = db.execute("SELECT t FROM state").fetchone()
            except sqlite3.Error:
                continue
            if row and row[0] > last:
                last = row[0]
                mark(last)


main()
