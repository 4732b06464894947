"""The commands for a job file: init, check, train, predict, evaluate, describe, ask."""
