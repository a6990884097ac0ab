"""What a person sees of each command's result."""
