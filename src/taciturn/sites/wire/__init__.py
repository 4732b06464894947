"""The network side of a site: trust in frames (signed messages), the configuration of Zenoh, and refusals."""
