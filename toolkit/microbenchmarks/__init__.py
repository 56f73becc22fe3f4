"""Measure the constants of an SM for the timing model: `python -m toolkit.microbenchmarks`.

The input is probes: kernels around one instruction, one file per idea. The output is constants of
analysis/hardware. Start with `probe`, then `bench`. A test checks the machine code of each probe.
"""
