"""The ledger of releases: charged before the release, in memory or on disk."""
