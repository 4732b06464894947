"""Write tables and three jobs for four hospitals. The tables look like the public heart-disease tables.

`python examples/heart_tables.py heart` writes heart/<hospital>.csv, and the jobs describe.toml, train.toml
and evaluate.toml. The sites use ports of this machine, from 7441 on. All rows are made up.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

HOSPITALS = {"cleveland": 3030, "hungary": 2940, "switzerland": 1230, "long-beach": 2000}
SCHEMA = """
[schema]
fields = [
    { name = "age", low = 20, high = 90 },
    { name = "sex", values = ["female", "male"] },
    { name = "pain", values = ["typical", "atypical", "other", "none"] },
    { name = "pressure", low = 80, high = 220 },
    { name = "cholesterol", low = 100, high = 500 },
    { name = "rate", low = 60, high = 210 },
    { name = "angina", kind = "boolean" },
]
"""
LABEL = '\n[label]\ncolumn = "disease"\nclasses = ["no", "yes"]\n'


def patients(rows, seed):
    """The table of one hospital: disease is likelier for older men with angina; some values are missing."""
    rng = np.random.default_rng(seed)
    age, male = rng.normal(54, 9, rows).clip(25, 88).round(), rng.random(rows) < 0.65
    angina = rng.random(rows) < 0.35
    pressure = rng.normal(110 + 0.4 * age, 16).round()
    rate = rng.normal(205 - age - 12 * angina, 18).round()
    cholesterol = rng.normal(240, 45, rows).round()
    risk = 0.06 * (age - 54) + 1.1 * male + 1.6 * angina - 0.03 * (rate - 148) - 1.2
    disease = rng.random(rows) < 1 / (1 + np.exp(-risk))
    pain = np.where(
        disease, rng.choice(["none", "other"], rows), rng.choice(["typical", "atypical", "other"], rows)
    )
    return {
        "age": age,
        "sex": np.where(male, "male", "female"),
        "pain": pain,
        "pressure": pressure,
        "cholesterol": np.where(rng.random(rows) < 0.1, "", cholesterol.astype(str)),
        "rate": rate,
        "angina": np.where(angina, "yes", "no"),
        "disease": np.where(disease, "yes", "no"),
    }


def job(name, kind, epsilon, ports, more=""):
    """The text of a job file, on which all four hospitals agree."""
    head = f'format = 2\nname = "{name}"\nkind = "{kind}"\nepsilon = {epsilon}\ncolluding = 1\n{more}'
    sites = "".join(
        f'\n[[sites]]\nname = "{hospital}"\nendpoint = "tls/127.0.0.1:{port}"\nsamples = {rows}\n'
        for (hospital, rows), port in zip(HOSPITALS.items(), ports, strict=True)
    )
    return head, sites


def main(folder, ports=range(7441, 7445)):
    """Write tables and jobs. Replace SHA256 in evaluate.toml by the digest of the model after training."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (hospital, rows) in enumerate(HOSPITALS.items()):
        table = patients(rows, seed)
        with (folder / f"{hospital}.csv").open("w", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(table)
            lines.writerows(zip(*table.values(), strict=True))
    texts = {}
    head, sites = job("table-one", "describe", 1.0, ports)
    texts["describe"] = f'{head}{sites}{SCHEMA}\n[describe]\nby = "sex"\n'
    model = 'loss = "logistic"\nrounds = 12\nC = 1.0\nregularization = 0.001\nmissing = "field"\n'
    head, sites = job("risk-model", "train", 2.0, ports, model)
    texts["train"] = f"{head}{sites}{SCHEMA}{LABEL}"
    head, sites = job("does-it-work", "evaluate", 1.0, ports)
    asked = '\n[evaluate]\nmodel = { file = "model.json", sha256 = "SHA256" }\nby = "site"\n'
    texts["evaluate"] = f"{head}{sites}{SCHEMA}{LABEL}{asked}"
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text)
    print(f"wrote {folder}: four tables and three jobs")


if __name__ == "__main__":
    main(*sys.argv[1:2])
