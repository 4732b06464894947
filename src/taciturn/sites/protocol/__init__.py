"""The protocol of a site as a state machine: events in, effects out, and no input or output of its own."""
