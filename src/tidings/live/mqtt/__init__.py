"""MQTT clients on sockets: what they ask of the broker, and what is delivered to them."""
