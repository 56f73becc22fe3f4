"""The simulator's core in C, and its ctypes binding.

Comes in: a translated kernel and a launch. Goes out: memory, counts, streams and accesses. Start
with `binding`; `core.h` lists the C modules in their order.
"""
