"""Who asks L2 and DRAM for what.

Comes in: the cache lines that each block accesses, and when blocks run. Goes out: `Traffic`, the
bytes at each level. Start with `l2`; `block_schedule` says which blocks run at the same time.
"""
