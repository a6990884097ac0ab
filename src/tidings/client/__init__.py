"""How does a program of ours take part as a client? By MQTT 5, as anybody else does."""
