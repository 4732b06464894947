"""The protocol of a site as a state machine: events in, effects out, no I/O."""
