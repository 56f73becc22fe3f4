"""A census of opcodes: which instructions compilers emit, and which the simulator executes."""
