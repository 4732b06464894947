"""What crosses the network: signed frames, the session that carries them, and what is refused."""
