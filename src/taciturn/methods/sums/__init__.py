"""Masked sums over all sites: only the totals are visible."""
