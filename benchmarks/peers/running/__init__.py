"""Processes where there is no network but loopback, and what they took."""
