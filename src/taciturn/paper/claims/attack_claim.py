"""The paper's claims about an observer who knows all records of a site but one: section 6.2, appendix E."""

from __future__ import annotations

from ...core.formatting import format_cost
from ..figures.attack_runner import AttackFigureResult
from .claim import Claim, claim, judge

FOUND = 0.9  # a cosine that counts as having found the record


def claims_of_attack(attacked: AttackFigureResult) -> list[Claim]:
    """With the penalty known, and with the penalty secret."""
    return [_known(attacked), _secret(attacked)]


def _known(attacked: AttackFigureResult) -> Claim:
    clean, noisy = (attacked.cosine(noise, "known") for noise in ("none", "paper"))
    return claim(
        "attack-known",
        f"Mean cosine to the record after {attacked.figure.run.rounds} rounds: {clean:.3f} without noise, "
        f"{noisy:.3f} with α = 3 (ε = {format_cost(attacked.epsilon['paper'])}), where a random direction "
        f"has ±{attacked.results['paper'].chance:.3f}.",
        judge([clean > FOUND, noisy > FOUND]),
        {"no_noise": clean, "paper_noise": noisy, "epsilon": attacked.epsilon["paper"]},
    )


def _secret(attacked: AttackFigureResult) -> Claim:
    clean = max(attacked.cosine("none", name) for name in ("estimated", "geometric"))
    tiny, known = (attacked.cosine("tiny", name) for name in ("estimated", "known"))
    ratio = attacked.results["none"].eta_ratio[attacked.results["none"].observers.index("estimated"), -1]
    return claim(
        "attack-secret",
        f"Without noise an observer who estimates η from the broadcasts reaches {clean:.3f} (its η is off by "
        f"{abs(float(ratio.mean()) - 1):.1%}); with very little noise {tiny:.3f}, where one who knows η "
        f"reaches {known:.3f}.",
        judge([clean < FOUND]),
        {"estimated": clean, "estimated_tiny": tiny, "known_tiny": known},
    )
