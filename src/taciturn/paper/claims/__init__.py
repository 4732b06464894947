"""The paper's claims beside what was measured."""
