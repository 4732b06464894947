"""Where a site stands: status, the status page, the check-up before a run."""
