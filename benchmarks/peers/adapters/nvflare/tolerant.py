"""FLARE's controller for logistic regression, with rounds that do not wait forever for one site."""

from nvflare.app_common.workflows.lr.fedavg import FedAvgLR


class TolerantLR(FedAvgLR):
    """Ask all sites; after four answers, wait two more seconds for the fifth."""

    def send_model_and_wait(self, targets, data):
        """Set `min_responses` and `wait_time_after_min_received`, as FLARE's guides describe."""
        return self.broadcast_model(data, targets=targets, min_responses=4, wait_time_after_min_received=2)
