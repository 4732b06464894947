"""disropt: each MPI process is an agent with its own rows; ADMM on a ring.

mpirun -np 5 python launcher.py ROWS_FOLDER ROUNDS PENALTY REGULARIZATION
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from disropt.agents import Agent
from disropt.algorithms import ADMM
from disropt.functions import Logistic, Variable
from disropt.problems import Problem
from marks import mark
from mpi4py import MPI

folder, rounds, penalty, regularization = sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:5])
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()

rows = np.load(Path(folder) / f"site-{rank}.npz")
margins = rows["y"][:, None] * rows["X"]
n, d = margins.shape

# mean logistic loss over all sites' rows, with this site's share of the regulariser
x = Variable(d)
loss = (np.ones((n, 1)) / (n * size)) @ Logistic(-margins.T @ x)
problem = Problem(loss + regularization / (2 * size) * (x @ x))

neighbours = sorted({(rank - 1) % size, (rank + 1) % size})
weights = [1 / 3 if j in (*neighbours, rank) else 0.0 for j in range(size)]
agent = Agent(in_neighbors=neighbours, out_neighbors=neighbours, in_weights=weights)
agent.set_problem(problem)


class Marked(ADMM):
    """ADMM that records the end of every round."""

    done = 0

    def iterate_run(self, rho, **kwargs):
        super().iterate_run(rho, **kwargs)
        self.done += 1
        if rank == 0:
            mark(self.done)


lambdas = {j: np.zeros((d, 1)) for j in (*neighbours, rank)}
algorithm = Marked(agent, lambdas, np.zeros((d, 1)))
algorithm.run(iterations=rounds, penalty=penalty)

found = comm.gather(algorithm.get_result()[0].reshape(-1), root=0)
if rank == 0:
    out = Path(os.environ["PEER_FOLDER"])
    (out / "models.json").write_text(json.dumps([f.tolist() for f in found]))
    (out / "model.json").write_text(json.dumps(np.mean(found, axis=0).tolist()))
