"""What brokers tell each other apart from messages: interests, link states, and probes."""
