"""The measurements for pages in docs/. Each has its own command, such as `python -m benchmarks.speed`.

The pages compare times within one run. No test checks a time.
"""
