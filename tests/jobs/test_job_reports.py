"""The report of a site in a network: the claim, the sites by name, and how to verify it."""

from __future__ import annotations

import datetime

from support.sitework import TABLE, table
from taciturn.jobs.job_reports import site_report, write_site_report
from taciturn.sites.rounds.prepare import make_ready


def test_a_site_has_the_same_page_as_a_training_run(tmp_path):
    site = table(tmp_path / "net", TABLE, intercept=True)
    site.state.mkdir(exist_ok=True)
    certificate = make_ready(site).forecast()
    (site.state / "certificate.json").write_text(certificate.to_json())
    data = site_report(site)
    assert data.brief["date"] == datetime.date.today().isoformat()
    assert data.brief["from which columns"] == "age, sex=f, sex=m"
    assert data.brief["what was learnt"].startswith("income") and site.name in data.brief["who took part"]
    assert "1 more, which this certificate does not cover" in data.brief["who took part"]
    assert tuple(data.network.names) == site.job.names
    page = write_site_report(site).read_text()
    assert page.index('id="claim"') < page.index("taciturn site verify") < page.index("data-chart=")
