"""Kernels of Python front ends, brought to machine code with no GPU: Triton, Numba, CuPy and more.

`front_end.py` is the contract and the table of front ends. Each has a module, such as
`cute_kernels.py`, which is imported when one of its kernels is launched.
"""
