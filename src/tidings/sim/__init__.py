"""World one: virtual time. It knows physics (delay, loss, failures, arrivals), no protocol."""
