"""Count epsilon with Flower's accountant in a server that is killed. With NAME `kept`, its state is saved."""

import json

from counting import count, folder, name
from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)

config = PrivacyConfig(
    target_delta=1e-5,
    population_size=5,
    neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    sampling_method=SamplingMethod.NO_AMPLIFICATION,
)
accountant, state = RdpAccountant(config), folder / "accountant.json"
if name == "kept" and state.exists():
    accountant.load_state_dict(json.loads(state.read_text()))


def spend():
    """Count one round as the strategy does; return the epsilon so far."""
    accountant.compose(GaussianPrivacyEvent(10.0, sample_size=5, population_size=5))
    if name == "kept":
        state.write_text(json.dumps(accountant.state_dict()))
    return accountant.get_privacy_spent().epsilon


count(spend)
