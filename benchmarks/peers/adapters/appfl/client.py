"""APPFL's client: python client.py NAME ROWS [setting=value ...]"""

import json
import os
import sys
from pathlib import Path

from appfl.agent import ClientAgent
from appfl.comm.grpc import GRPCClientCommunicator
from marks import mark
from omegaconf import OmegaConf

name, path, *locks = sys.argv[1:]
config = OmegaConf.load("client.yaml")
config.client_id = name
config.data_configs.dataset_kwargs.path = path

agent = ClientAgent(client_agent_config=config)
grpc = OmegaConf.merge(config.comm_configs.grpc_configs, OmegaConf.from_dotlist(locks))
communicator = GRPCClientCommunicator(agent.get_id(), **grpc)
agent.load_config(communicator.get_configuration())
agent.load_parameters(communicator.get_global_model(init_model=True))
communicator.invoke_custom_action(action="set_sample_size", sample_size=agent.get_sample_size())

done = 0
while True:
    agent.train()
    local, facts = agent.get_parameters()
    model, metadata = communicator.update_global_model(local, **facts)
    done += 1
    if name == "site-0":
        mark(done)
    if metadata["status"] == "DONE":
        break
    agent.load_parameters(model)
part = Path(os.environ["PEER_FOLDER"], f"model-{name}.json")
part.write_text(json.dumps([float(value) for value in model["coef_"].reshape(-1)]))
part.replace(part.with_name("model.json"))  # the clients that remain at the end write it
communicator.invoke_custom_action(action="close_connection")
