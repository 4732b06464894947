"""python -m tools.forge [EDITS]: forge so many certificates, hash and all, and see whether one is believed.

An edit may be believed only if what it states, and what follows from it, is at least the honest figure.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def main(edits: int) -> None:
    sys.path[:0] = [str(HERE / "tests"), str(HERE / "src")]
    from privacy.certificate.test_forged import real_certificate  # type: ignore[import-not-found]
    from support.example_run import certificate  # type: ignore[import-not-found]
    from support.forger import attack  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        honest = [
            certificate(),
            certificate(noise="gaussian", scale=3.4),
            certificate(output_noise="norm", tol=1e-9),
            real_certificate(Path(folder)),
        ]
        for number, entry in enumerate(honest):
            refused, believed = attack(entry, edits // len(honest), seed=1000 + number)
            print(f"{entry!r}: {refused} refused, {believed} believed, none too small")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
