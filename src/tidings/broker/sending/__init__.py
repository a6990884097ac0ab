"""How messages leave a broker: queues, windows, answers that are awaited, and budgets."""
