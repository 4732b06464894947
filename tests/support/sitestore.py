"""The file of a site without its network: opened, and charged by hand."""

from __future__ import annotations

from taciturn.sites.protocol.events import ChargedRelease, StoreRecords
from taciturn.sites.rounds.prepare import PreparedSite
from taciturn.sites.rounds.store import SiteStore


def open_store(ready: PreparedSite) -> SiteStore:
    """The file of a site, new or resumed."""
    site = ready.site
    given = {"run": ready.run, "facts": ready.facts, "budget": ready.budget}
    return SiteStore(site.database, job=site.job.hash, name=site.name, **given)


def charge_round(ready: PreparedSite, store: SiteStore, t: int, frame: bytes = b"f") -> None:
    """Store a message of round t with its charge, as the first attempt does."""
    everybody = tuple(range(len(ready.site.job.names)))
    facts = ready.run.sums[t - 1] if ready.run.masked else None
    release = ChargedRelease(next(ready.prepared.charges(t).each()), 1, bytes(32), everybody, facts)
    store.write(StoreRecords(t, {"message": frame}, (release,)))
