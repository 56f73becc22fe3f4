"""Kernels with one flaw each, the cause that a prediction has to name, and how they are mended.

`python -m validation.flaws` compares causes and savings with what is expected and was measured.
"""
