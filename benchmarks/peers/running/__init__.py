"""Run processes without any network except loopback, and measure time, memory and traffic."""
