"""The progress of a site: status, the status page, and the check before a run."""
