"""A launch: a kernel with its grid, block and arguments, checked before anything runs.

The input is a user's request, or host code. The output are arguments and a geometry that a GPU and
the simulator both accept, and the `Execution` that both return. Start with `launch`, then `checks`.
"""
