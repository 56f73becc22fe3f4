"""Kernels of public repositories on tensor cores, by which predicted times are judged."""
