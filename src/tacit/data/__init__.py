"""Data sets, tables with public bounds, and dealing rows to sites."""
