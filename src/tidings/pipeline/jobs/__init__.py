"""What a person starts: read, transform, write."""
