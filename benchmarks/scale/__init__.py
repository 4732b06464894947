"""Many sites, many shards."""
