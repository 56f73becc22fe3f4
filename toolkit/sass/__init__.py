"""The SASS simulator: machine code of NVIDIA GPUs, executed and counted on a CPU.

The folders follow the pipeline:

    cubin --disassemble--> text --decode--> Instruction --isa--> Op --machine--> outputs, counters

`isa/` is the registry of semantics: one function per opcode says which operation of the native
core (`core/`, C) an instruction is. What it does not know, it refuses by name.
"""
