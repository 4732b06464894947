"""Count epsilon with FLARE's filter SVTPrivacy, in a client that is killed."""

import numpy as np
from counting import count
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

noise = SVTPrivacy(fraction=0.1, epsilon=0.1, noise_var=0.1)


def spend():
    """Pass one model update through the filter; return the epsilon so far."""
    update = DXO(DataKind.WEIGHT_DIFF, data={"weights": np.linspace(-1.0, 1.0, 106)})
    noise.process_dxo(update, Shareable(), FLContext())
    return noise.get_privacy_spent()


count(spend)
