"""Measure what the timing model needs to know of an SM: `python -m toolkit.microbenchmarks`.

Comes in: probes, kernels around one instruction, one file per idea. Goes out: constants of
analysis/hardware. Start with `probe`, then `bench`. A test checks the machine code of each probe.
"""
