"""``python -m groundstate`` is the command line."""

from groundstate.cli import main

main()
