"""`python -m toolkit.recorded`."""

from toolkit.store.recorded_runs import main

main()
