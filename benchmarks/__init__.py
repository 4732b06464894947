"""What the pages under docs/ measure, one command each: `python -m benchmarks.{speed,scale,sites,utility}`.

Speed is a ratio within one run; no test asserts it.
"""
