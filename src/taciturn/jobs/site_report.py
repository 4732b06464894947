"""A network's run as the page of one of its sites: the claim first, as on the page of `taciturn train`."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

from ..privacy.certificate.certificate import Certificate
from ..report import ReportData, from_certificates, write
from ..sites.files.site import Site
from .run_folder import CERTIFICATE, REPORT


def site_report(site: Site, *, date: str = "") -> ReportData:
    """What one site may claim of the run that it took part in, from its certificate and the public job."""
    job = site.job
    certificate = Certificate.from_json((site.state / CERTIFICATE).read_text(encoding="utf-8"))
    learnt = "" if job.label is None else f"{job.label.column}, by {job.loss.name} loss"
    data = from_certificates(
        {site.name: certificate},
        title=job.name,
        subtitle=f"{len(job.sites)} sites learn one model together; this is the page of {site.name}",
        graph=job.graph,
        about={
            "date": date,
            "learnt": learnt,
            "features": [name for name in job.feature_names if name != "intercept"],
            "verify": f"taciturn certify {site.state.name}/ and taciturn site verify (the signature)",
        },
        settings={"method": certificate.run.method, "rounds": certificate.run.rounds, "sites": job.names},
        provenance={"job": job.hash.hex(), "versions": dict(certificate.run.versions)},
    )
    if data.network is None:
        return data
    return replace(data, network=replace(data.network, names=list(job.names)))


def write_site_report(site: Site) -> Path:
    """report.html in the state folder of a site whose run is over."""
    return write(site_report(site, date=datetime.date.today().isoformat()), site.state / REPORT)
