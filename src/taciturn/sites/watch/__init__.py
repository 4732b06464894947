"""The check before a run, and the progress of a running site: status, status page and metrics."""
