"""World two: asyncio brokers with real sockets, clients and files, around the same `Broker`."""
