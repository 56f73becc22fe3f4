"""Hardware counters: launches executed once more under `ncu`.

Comes in: launches that passed their check. Goes out: counters for each. Start with `collect`.
"""
