"""How the frames of the protocol travel between sites: over Zenoh."""
