"""Other packages do the same work beside us, each in a virtual environment of its own."""
