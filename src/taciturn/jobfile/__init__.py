"""The files job.toml and owner.toml: their keys, and how they and the tables of a job are read."""
