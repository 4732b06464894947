"""The paper's claims beside the measurements."""
