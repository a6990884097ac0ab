"""What holds for all tests."""

from hypothesis import settings

# On a busy machine a slow example says nothing about the code.
settings.register_profile("tidings", deadline=None)
settings.load_profile("tidings")
