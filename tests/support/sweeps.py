"""A sweep of a few seconds."""

GRID = """
name = "small"
title = "Four points"

[data]
name = "breast-cancer"
limit = 60
sites = 3
deal = "evenly"
seed = 0

[graph]
kind = "complete"

[problem]
C = 10
regularization = 0.05

[run]
rounds = 2
repeats = 2
seed = 0
start = "zeros"
tol = 1e-7
delta = 1e-5

[method]
method = "penalty"
penalty = { kind = "geometric", start = 0.5, ratio = 1.0 }
dual_step = 0.5
noise = { kind = "norm", rate = 2.0 }

[axes]
"method.penalty.ratio" = [1.0, 1.1]
"run.rounds" = [2, 3]
"""
