"""The same job as a FedJob whose controller does not wait forever for a site that died.

python tolerant_job.py ROWS_FOLDER ROUNDS
"""

import sys

from job import finish
from nvflare.app_common.workflows.lr.np_persistor import LRModelPersistor
from nvflare.client.config import ExchangeFormat
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner
from nvflare.recipe.spec import Recipe
from tolerant import TolerantLR

rows, rounds = sys.argv[1], int(sys.argv[2])
job = FedJob(name="adult", min_clients=5)  # it starts when all five are connected
persistor = job.to_server(LRModelPersistor(n_features=105), id="lr_persistor")
controller = TolerantLR(
    num_clients=5, num_rounds=rounds, damping_factor=1.0, n_features=105, persistor_id=persistor
)
job.to_server(controller)
runner = ScriptRunner(
    script="client.py",
    script_args=f"--rows {rows}",
    framework=FrameworkType.RAW,
    server_expected_format=ExchangeFormat.RAW,
)
job.to_clients(runner)
finish(Recipe(job), ends=("COMPLETED", "ABNORMAL"))  # ABNORMAL: a site did not report its end
