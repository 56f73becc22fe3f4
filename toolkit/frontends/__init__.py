"""Kernels of Python front ends, brought to machine code with no GPU: Triton, Numba, CuPy and more.

Each front end has a module with one function, `prepared(compiled, request)`, which gives a
`PreparedLaunch`: machine code, launch and all parameters, the hidden ones too.
`toolkit.frontends.recognition` finds the module for an object and imports it then.
"""
