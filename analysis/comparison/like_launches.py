"""Launches that were measured, for `analysis.comparison.interval`: a line each.

`python -m benchmarks.intervals` writes this file: do not edit it. The state of L2 and the limiter,
log(measured / predicted), and how busy each unit is in the prediction.
"""

# Half width of the interval of a change between two versions of one kernel, relative to that of
# two independent predictions.
PAIR_SHARE = 1.0

LAUNCHES = """
"""
