"""What an SM's timing model needs to know, measured: `python -m toolkit.microbenchmarks`.

One file per idea; each has its probes (kernels around one instruction) and the constants that
they yield. `probe.py` says what a probe is, `bench.py` launches it, `record.py` keeps what comes
out. The machine code of every probe is held to what it claims to measure by a test.
"""
