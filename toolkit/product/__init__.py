"""A matrix product of arrays on the GPU: `toolkit.matmul`.

Comes in: arrays of PyTorch, CuPy or PyCUDA. Goes out: their product, on the caller's stream. Start
with `matmul`, then `operands` (layouts), `recipe` (what is launched) and `prepared` (how).
"""
