"""The noise that Opacus, which APPFL uses, wants for a budget: python noise.py EPSILON DELTA RATE STEPS"""

import sys
import warnings

warnings.simplefilter("ignore")
from opacus.accountants.utils import get_noise_multiplier  # noqa: E402

epsilon, delta, rate, steps = (float(entry) for entry in sys.argv[1:])
print(
    get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=int(steps), accountant="rdp"
    )
)
