"""The measurements behind the pages in docs/, one command each: `python -m benchmarks.{speed,scale,...}`.

Speed is a ratio within one run; no test asserts it.
"""
