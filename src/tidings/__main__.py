"""`python -m tidings` is `tidings`."""

from tidings.cli.main import main

main()
