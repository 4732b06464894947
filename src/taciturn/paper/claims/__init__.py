"""The paper's claims, compared with measurements."""
