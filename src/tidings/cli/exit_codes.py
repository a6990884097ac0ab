"""What does a command tell the shell when it ends? 0 if all is well, else one of these."""

FAILED = 1  # it ran, but its result is not whole
USER_ERROR = 2  # a mistake of the caller; nothing was done
INTERRUPTED = 130  # by Ctrl-C or SIGTERM, as shells have it
