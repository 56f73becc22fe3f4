"""Sizes of the heap from which `malloc` and `new` in a kernel take memory."""

# CUDA C++ Programming Guide, "Dynamic Global Memory Allocation": the heap of a device by default.
HEAP_BYTES = 8 << 20
MOST_HEAP_BYTES = 1 << 36
