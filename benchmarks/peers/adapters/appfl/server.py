"""APPFL's server: python server.py ROUNDS [setting=value ...]"""

import sys

from appfl.agent import ServerAgent
from appfl.comm.grpc import GRPCServerCommunicator, serve
from omegaconf import OmegaConf

config = OmegaConf.load("server.yaml")
config.server_configs.num_global_epochs = int(sys.argv[1])
grpc = config.server_configs.comm_configs.grpc_configs
grpc = OmegaConf.merge(grpc, OmegaConf.from_dotlist(sys.argv[2:]))

agent = ServerAgent(server_agent_config=config)
communicator = GRPCServerCommunicator(agent, logger=agent.logger, **grpc)
serve(communicator, **grpc)
