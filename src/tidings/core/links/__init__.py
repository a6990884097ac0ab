"""What is known about one link: estimates, pace, silences, weather, and what was learned."""
