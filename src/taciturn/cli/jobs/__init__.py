"""The commands around a job file: init, train, predict."""
