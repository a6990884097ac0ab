"""MQTT 3.1.1 and 5 without sockets: bytes in, requests and bytes out."""
