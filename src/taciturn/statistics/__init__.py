"""Private statistics of rows in this process: scores, descriptions, survival, regressions and programs."""
