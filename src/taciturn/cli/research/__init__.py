"""The commands for researchers: reproduce, sweep, attack, audit."""
