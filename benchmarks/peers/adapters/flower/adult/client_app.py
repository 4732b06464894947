"""The client of Flower: train on the site's rows, starting from the global weights."""

import warnings

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from adult.task import load_rows, make_model

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Fit the model to the site's rows."""
    X, y = load_rows(context.node_config["rows"])
    model = make_model(context.run_config["C"], context.run_config["max-iter"])
    model.coef_ = message.content["arrays"].to_numpy_ndarrays()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    arrays = ArrayRecord(numpy_ndarrays=[model.coef_], keep_input=False)
    metrics = MetricRecord({"num-examples": len(y)})
    return Message(content=RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
