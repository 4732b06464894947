"""The network side of a site: trust in frames, the configuration of Zenoh, and refusals."""
