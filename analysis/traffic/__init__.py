"""Model of the traffic of L2 and DRAM.

Input: the cache lines that each block accesses, and when blocks run. Output: `Traffic`, the bytes
at each level. Start with `l2`; `block_schedule` says which blocks run at the same time.
"""
