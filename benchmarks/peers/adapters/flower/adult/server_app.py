"""The server of Flower: average the weights of the sites."""

import json
import os
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from marks import mark

from adult.task import FEATURES

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run FedAvg over all connected sites."""
    config = context.run_config
    nodes = config["min-nodes"]
    strategy = FedAvg(
        fraction_evaluate=0.0,
        min_train_nodes=nodes,
        min_available_nodes=nodes,
    )

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
