"""`python -m maple.cli` is the command `maple`."""

from maple.cli.app import main

main()
