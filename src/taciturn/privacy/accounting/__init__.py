"""The bounds on the privacy cost, as functions of plain numbers."""
