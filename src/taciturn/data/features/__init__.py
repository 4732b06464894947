"""Public feature maps: curves and surfaces that are fixed before any row is read."""
