"""`python -m toolkit.tuned`."""

from toolkit.store.tuned import main

main()
