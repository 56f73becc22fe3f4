"""Kernels of public repositories, as their files stand: which compile, and which execute."""
