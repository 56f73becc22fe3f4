"""Runs on real GPUs that ship with the package: `python -m toolkit.recorded` adds one."""
