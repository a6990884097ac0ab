"""`tidings sweep`: one scenario many times, and what each point of it comes to."""
