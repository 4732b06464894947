"""How the frames (signed messages) of the protocol travel between sites: over Zenoh."""
