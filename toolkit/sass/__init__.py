"""Execute the machine code (SASS) of a kernel on the CPU.

Comes in: a `Kernel` and a launch. Goes out: memory after the launch, counts, streams and accesses.
Start with `translate` and `machine`. `isa/` says what each opcode does; what it does not know, it
refuses by name. `core/` executes it, in C.
"""
