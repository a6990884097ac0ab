"""What a person types: one module per command."""
