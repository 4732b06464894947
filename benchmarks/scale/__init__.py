"""Measure runs with many sites and many shards."""
