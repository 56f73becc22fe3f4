"""A launch: a kernel with its grid, block and arguments, checked before anything runs.

Comes in: what a user asks for. Goes out: a `Launch` that a GPU and the simulator both accept, and
the `Execution` that both return. Start with `launch`, then `checks`.
"""
