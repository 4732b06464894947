"""FLARE's controller for logistic regression, with a round that does not wait for ever for one site."""

from nvflare.app_common.workflows.lr.fedavg import FedAvgLR


class TolerantLR(FedAvgLR):
    """All sites are asked; once four have answered, the fifth has two seconds more."""

    def send_model_and_wait(self, targets, data):
        """What FLARE's guides set for this: `min_responses` and `wait_time_after_min_received`."""
        return self.broadcast_model(data, targets=targets, min_responses=4, wait_time_after_min_received=2)
