"""The report of a site in a network: the claim, the sites by name, and how to verify it."""

from __future__ import annotations

import datetime
import re

import numpy as np

from support.sitework import TABLE, table
from taciturn.jobs.job_reports import site_report, write_site_report
from taciturn.jobs.statistics import ask_job
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


ASKED = """
format = 2
name = "two questions"
kind = "several"
epsilon = 1.0
sites = [{ name = "one" }, { name = "two" }]
label = { column = "ill", classes = ["no", "yes"] }

[schema]
fields = [{ name = "age", low = 0, high = 100 }, { name = "stay", low = 0, high = 100 }]

[[questions]]
kind = "describe"

[[questions]]
kind = "correlations"
columns = ["age", "stay"]
"""


def test_the_report_of_questions_links_to_every_file_of_their_answers(tmp_path):
    (tmp_path / "job.toml").write_text(ASKED)
    (tmp_path / "owner.toml").write_text('rows = { one = "one.csv", two = "two.csv" }\n')
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        lines = [f"{a:.1f},{b:.1f},yes" for a, b in rng.uniform(0, 100, (500, 2))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,stay,ill", *lines]))
    _, written = ask_job(tmp_path / "job.toml")
    page = (tmp_path / "answers" / "report.html").read_text()
    links = re.findall(r'<a href="([^#"]+)"', page)
    assert sorted([*links, "report.html"]) == sorted(path.name for path in written)
    assert {"1-describe.html", "2-correlations.csv", "result.json", "certificate.json"} <= set(links)
    assert "the answer to &#39;describe&#39; and &#39;correlations&#39;" in page and "logistic" not in page
    page = (tmp_path / "answers" / "1-describe.html").read_text()
    assert '<a href="report.html">' in page and 'name="viewport"' in page and "light dark" in page
    assert "records" in page and "units" not in page
