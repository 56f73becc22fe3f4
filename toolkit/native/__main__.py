"""`python -m toolkit.native`."""

from toolkit.native import main

main()
