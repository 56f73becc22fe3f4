"""Execute the machine code (SASS) of a kernel on the CPU.

The input is a `Kernel` and a launch. The output is memory after the launch, counts, streams and
accesses. Start with `translate` and `machine`. `isa/` defines the semantics of each opcode, and
refuses unknown opcodes by name. `core/` executes the program, in C.
"""
