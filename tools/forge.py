"""python -m tools.forge [EDITS]: forge certificates, with valid hashes, and check whether one is accepted.

EDITS is the number of forgeries. A forgery may be accepted only if none of its figures is below the figure in
the honest certificate.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def main(edits: int) -> None:
    sys.path[:0] = [str(HERE / "tests"), str(HERE / "src")]
    from privacy.certificate.test_forged import (  # type: ignore[import-not-found]
        certified_model,
        masked_certificate,
        real_certificate,
    )
    from support.certified_runs import certified_runs, program_result  # type: ignore[import-not-found]
    from support.example_run import certificate  # type: ignore[import-not-found]
    from support.forger import (  # type: ignore[import-not-found]
        TRICKS,
        attack,
        attack_model,
        attack_result,
        attack_sums,
        attack_trick,
    )

    with tempfile.TemporaryDirectory() as folder:
        honest = [
            certificate(),
            certificate(noise="gaussian", scale=3.4),
            certificate(output_noise="norm", tol=1e-9),
            real_certificate(Path(folder)),
            masked_certificate(),
            *certified_runs().values(),
        ]
        each = edits // len(honest)
        for number, entry in enumerate(honest):
            refused, believed = attack(entry, each, seed=1000 + number)
            print(f"{entry!r}: {refused} refused, {believed} accepted, none with too small a figure")
        refused = sum(attack_sums(entry, each, seed=7) for entry in honest if entry.run.sums)
        print(f"sums that claim less, with matching figures: {refused} refused, no smaller figure accepted")
        for name, trick in TRICKS.items():
            found = [attack_trick(entry, trick, edits // 50, seed=11) for entry in honest]
            print(f"{name}: {sum(found)} refused, no smaller figure accepted")
        refused = attack_model(certified_model(Path(folder)), Path(folder), each, seed=13)
        print(f"models with the certificate of another model: {refused} refused, none loaded")
        answers = Path(folder) / "answers"
        answers.mkdir()
        refused = attack_result(program_result(), answers, each, seed=17)
        print(f"results with the certificate of another result: {refused} refused, none verified")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
