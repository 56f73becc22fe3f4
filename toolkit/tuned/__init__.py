"""Tuned parameters that ship with the package: `python -m toolkit.tuned` adds some."""
