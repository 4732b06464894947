"""Certificates: the privacy guarantee that follows from the facts of a run, as JSON and in words."""
