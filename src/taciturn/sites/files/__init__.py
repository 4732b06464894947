"""The files that a site reads: job.toml, site.toml, keys, and its own rows."""
