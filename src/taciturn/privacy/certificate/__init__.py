"""Facts of a run -> what may be claimed of it; as JSON both ways, and in words."""
