"""The counter of FLARE's SVTPrivacy, a filter of a client that is killed."""

import numpy as np
from counting import count
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

noise = SVTPrivacy(fraction=0.1, epsilon=0.1, noise_var=0.1)


def spend():
    """One update of a model goes through the filter."""
    update = DXO(DataKind.WEIGHT_DIFF, data={"weights": np.linspace(-1.0, 1.0, 106)})
    noise.process_dxo(update, Shareable(), FLContext())
    return noise.get_privacy_spent()


count(spend)
