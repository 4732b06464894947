"""Call Flower's own mods and strategies in one process, to measure the effect of its noise on the model.

python in_process.py FOLDER PART reads settings-PART.json; it writes models-PART.json and printed-PART.json.
Each site takes one gradient step per round.
"""

import json
import sys
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod
from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # a SuperLink would set these

out, part = Path(sys.argv[1]), sys.argv[2]
settings = json.loads((out / f"settings-{part}.json").read_text())
sites = [np.load(path) for path in sorted(Path(settings["rows"]).glob("site-*.npz"))]
sites = [(np.asarray(site["X"]), np.asarray(site["y"])) for site in sites]


def client_app(case):
    """One gradient step on all rows of a site, with momentum, then Flower's local noise if requested."""
    mods = []
    if case["kind"] == "local":
        mods = [LocalDpMod(case["clip"], case["sensitivity"], case["epsilon"], case["delta"])]
    app = ClientApp(mods=mods)

    @app.train()
    def train(message, context):
        X, y = sites[context.node_config["site"]]
        f = message.content["arrays"].to_numpy_ndarrays()[0]
        chance = 1 / (1 + np.exp(y * (X @ f)))
        before = context.state["before"].to_numpy_ndarrays()[0] if "before" in context.state else f
        context.state["before"] = ArrayRecord([f])
        f = f + case["step"] * (X.T @ (y * chance)) / len(y) + case["momentum"] * (f - before)
        content = RecordDict({"arrays": ArrayRecord([f]), "metrics": MetricRecord({"num-examples": 1})})
        return Message(content=content, reply_to=message)

    return app


def strategy_for(case):
    """FedAvg, with Flower's central noise if requested."""
    if case["kind"] != "central":
        return FedAvg()
    return DifferentialPrivacyServerSideFixedClipping(
        FedAvg(),
        noise_multiplier=case["multiplier"],
        clipping_norm=case["clip"],
        num_sampled_clients=len(sites),
    )


def run(case, seed):
    """Run all rounds; return the mean of the last models, which costs no privacy."""
    np.random.seed(seed)
    app, strategy = client_app(case), strategy_for(case)
    contexts = [Context(1, i + 1, {"site": i}, RecordDict(), {}) for i in range(len(sites))]
    f, seen = np.zeros(sites[0][0].shape[1]), []
    for number in range(1, case["rounds"] + 1):
        replies, arrays = [], ArrayRecord([f])
        for i, context in enumerate(contexts):
            message = Message(RecordDict({"arrays": arrays}), dst_node_id=i + 1, message_type="train")
            replies.append(app(message, context))
        strategy.current_arrays = arrays
        f = strategy.aggregate_train(number, replies)[0].to_numpy_ndarrays()[0]
        seen.append(f)
    return np.mean(seen[-max(1, case["tail"]) :], axis=0).tolist()


def printed(multiplier, rounds):
    """The epsilon that Flower's accountant reports for these rounds, for adding or removing a client."""
    config = PrivacyConfig(
        target_delta=1e-5,
        population_size=len(sites),
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
        sampling_method=SamplingMethod.NO_AMPLIFICATION,
    )
    accountant = RdpAccountant(config)
    event = GaussianPrivacyEvent(multiplier, sample_size=len(sites), population_size=len(sites))
    accountant.compose(event, count=rounds)
    return accountant.get_privacy_spent().epsilon


found = [run(case, case["seed"]) for case in settings["cases"]]
said = [printed(case["multiplier"], case["rounds"]) for case in settings["cases"][:1] if "multiplier" in case]
(out / f"printed-{part}.json").write_text(json.dumps(said))
(out / f"models-{part}.json").write_text(json.dumps(found))
