"""The HTML reports of `taciturn train`, of `taciturn ask`, and of one site after its run in a network."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.formatting import join_words
from ..core.notebook import EffectPanel
from ..jobfile.job_format import TRAIN, Job
from ..privacy.certificate.certificate import Certificate
from ..report import Chart, Curve, ReportData, from_certificates, write
from ..report.runs import graph_of
from .run_folder import CERTIFICATE, MODEL, REPORT, RESULT, write_answers

if TYPE_CHECKING:
    from ..estimators.base import PrivateLinearModel
    from ..estimators.loaded import LoadedModel
    from ..questions.asking import Asking
    from ..questions.question import Question
    from ..sites.files.site import Site


def training_report(job: Job, fitted: PrivateLinearModel, model: LoadedModel) -> ReportData:
    """The report of a training run. All its numbers are computed from released vectors and public facts."""
    settings, released = dict(fitted.trace_.settings), fitted.trace_.released
    gap = np.linalg.norm(released - released.mean(axis=1, keepdims=True), axis=3).max(axis=(1, 2))
    gaps = Chart(
        "gap",
        "Disagreement",
        "largest distance of a site from the mean",
        [Curve(job.name, range(1, len(gap) + 1), gap.tolist())],
        note="Computed from released vectors. Loss and accuracy are not shown: no noise protects them.",
    )
    hidden = ("simulated", "repeats", "seed", "names", "samples", "graph", "versions")
    data = from_certificates(
        {job.name: fitted.certificate_},
        title=job.name,
        subtitle=f"{len(job.sites)} sites predict {'' if job.label is None else job.label.column} together",
        graph=graph_of(settings),
        charts=[gaps] if gap.any() and len(gap) > 1 else [],
        about=_about(job, job.schema_.names, "taciturn verify run/ (the folder of this report)"),
        settings={key: value for key, value in settings.items() if key not in hidden},
        provenance={"versions": settings["versions"]},
    )
    return replace(data, **_effects(model))


def site_report(site: Site) -> ReportData:
    """The report of a site that finished its run, from the site's certificate and the public job."""
    job = site.job
    certificate = Certificate.from_json((site.state / CERTIFICATE).read_text(encoding="utf-8"))
    asked = job.kind != TRAIN
    questions = job.asking.questions if asked else ()
    features = [*job.asking.reads] if asked else [name for name in job.feature_names if name != "intercept"]
    state = site.state.name
    signature = f"taciturn site verify {state}/statement.json --authority {site.file.keys.authority}"
    verify = f"taciturn verify {state}/ and, for the signature, {signature}"
    what = f"answer {_listed(questions)}" if asked else "learn one model"
    data = from_certificates(
        {site.name: certificate},
        title=job.name,
        subtitle=f"{len(job.sites)} sites {what} together; this is the report of {site.name}",
        graph=job.graph,
        about=_about(job, features, verify, questions),
        settings={"method": certificate.run.method, "rounds": certificate.run.rounds, "sites": job.names},
        provenance={"job": job.hash.hex(), "versions": dict(certificate.run.versions)},
    )
    if not asked and job.encoding is not None:
        from ..estimators.model_file import load_model  # slow to import; questions have no model

        data = replace(data, **_effects(load_model(site.state / MODEL)))
    if data.network is None:
        return data
    return replace(data, network=replace(data.network, names=list(job.names)))


def write_site_report(site: Site) -> Path:
    """Write report.html, and the answers if the job asked questions, to the state folder of a site."""
    job, answers = site.job, []
    if job.kind != TRAIN:
        totals = np.array(json.loads((site.state / RESULT).read_text(encoding="utf-8"))["totals"])
        certificate = Certificate.from_json((site.state / CERTIFICATE).read_text(encoding="utf-8"))
        found = job.asking.answers(job.sums, totals, certificate)
        answers = write_answers(site.state, found, [one.kind for one in job.asking.questions])
    return write(replace(site_report(site), files=_linked(answers)), site.state / REPORT)


def asked_report(
    job: Job, asking: Asking, certificate: Certificate, answers: Sequence[Path], folder: str
) -> ReportData:
    """The report of `taciturn ask`: the claims of its certificate, and links to `answers` in `folder`."""
    sites = "1 site answers" if len(job.sites) == 1 else f"{len(job.sites)} sites answer"
    data = from_certificates(
        {job.name: certificate},
        title=job.name,
        subtitle=f"{sites} {_listed(asking.questions)} together, on one machine",
        about=_about(job, asking.reads, f"taciturn verify {folder}/", asking.questions),
        settings={"method": certificate.run.method, "sites": job.names},
        provenance={"versions": dict(certificate.run.versions)},
    )
    return replace(data, files=_linked(answers))


def _linked(answers: Sequence[Path]) -> dict[str, list[str]]:
    """The files that the report links to, keyed by what they contain; empty if there are no answers."""
    if not answers:
        return {}
    names: dict[str, list[str]] = {}
    for path in answers:
        names.setdefault(path.stem, []).append(path.name)
    return names | {"all numbers": [RESULT], "certificate": [CERTIFICATE]}


def _listed(questions: Sequence[Question]) -> str:
    return join_words([repr(one.kind) for one in questions])


def _effects(model: LoadedModel) -> dict[str, Any]:
    """The fields of a report that show a model's curves; empty if the model has parts that are not curves."""
    if not model.has_curves:
        return {}
    curves = [model.curve(name) for name in model[0].column_names]
    classes = getattr(model[-1], "classes_", ())
    return {
        "effects": [EffectPanel(c.name, c.x, np.reshape(c.y, (len(c.x), -1))) for c in curves],
        "effects_label": curves[0].label,
        "outputs": [str(label) for label in classes] if len(classes) > 2 else [],
    }


def _about(
    job: Job, features: Sequence[str], verify: str, questions: Sequence[Question] = ()
) -> dict[str, Any]:
    """Facts for the report that are not in the certificate. `verify` is the command that checks the run."""
    learnt = "" if job.label is None else f"{job.label.column}, with {job.loss.name} loss"
    return {
        "date": datetime.date.today().isoformat(),
        "learnt": f"the answer to {_listed(questions)}" if questions else learnt,
        "features": list(features),
        "verify": verify,
    }
