"""What the server does: average the sites' weights, with central noise where that is asked for."""

import json
import os
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from marks import mark

from adult.task import FEATURES

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """FedAvg over all sites that are there."""
    config = context.run_config
    nodes = config["min-nodes"]
    strategy = FedAvg(
        fraction_evaluate=0.0,
        min_train_nodes=nodes,
        min_available_nodes=nodes,
    )
    if config["privacy"] == "central":
        strategy = private(strategy, config)

    def after_round(number: int, arrays: ArrayRecord) -> MetricRecord:
        if number:
            mark(number)
        return MetricRecord({"round": number})

    start = ArrayRecord(numpy_ndarrays=[np.zeros((1, FEATURES))])
    result = strategy.start(
        grid=grid,
        initial_arrays=start,
        num_rounds=config["num-server-rounds"],
        timeout=config["round-timeout"],
        evaluate_fn=after_round,
    )
    coef = result.arrays.to_numpy_ndarrays()[0]
    Path(os.environ["PEER_FOLDER"], "model.json").write_text(json.dumps(coef.reshape(-1).tolist()))


def private(strategy: FedAvg, config: dict) -> DifferentialPrivacyServerSideFixedClipping:
    """Central differential privacy, with Flower's accountant."""
    from flwr.serverapp import NeighboringRelation, PrivacyConfig, RdpAccountant, SamplingMethod

    accountant = RdpAccountant(
        PrivacyConfig(
            target_delta=1e-5,
            population_size=config["min-nodes"],
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=SamplingMethod.NO_AMPLIFICATION,
        )
    )
    return DifferentialPrivacyServerSideFixedClipping(
        strategy,
        noise_multiplier=config["noise-multiplier"],
        clipping_norm=config["clipping-norm"],
        num_sampled_clients=config["min-nodes"],
        accountant=accountant,
    )
