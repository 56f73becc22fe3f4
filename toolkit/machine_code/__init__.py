"""From CUDA C++ or a cubin to one `Kernel`.

Comes in: source text, options, cubins. Goes out: a `Kernel`, parsed once, with its resources, line
table and decoded instructions. Start with `kernel`, then `compile` and `decode`.
"""
