"""Steps of streams with straight runs taken apart."""

import numpy as np

from analysis.sm import RUN


def one_by_one(steps):
    """A step for each instruction."""
    is_run = steps["flags"] & RUN > 0
    lengths = np.where(is_run, steps["clocks"], 1)
    found = np.repeat(steps, lengths)
    of_run = np.repeat(is_run, lengths)
    places = np.arange(len(found)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    found["pc"] += places.astype(np.uint32)
    found["clocks"][of_run] = 0
    found["flags"][of_run] = 0
    return found
