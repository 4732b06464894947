"""Run one site from its first round to its last. A stopped site continues where it was."""
