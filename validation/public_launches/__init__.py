"""Launches of kernels of public repositories: drawn by a seed, measured once, predicted."""
