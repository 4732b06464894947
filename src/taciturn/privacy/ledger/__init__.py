"""Who released what: charged before the release, in memory or on disk."""
