"""Parts that tests and benchmarks share: corpus, timed launches, planted bugs, and recordings.

Recordings of hardware are in the folders `recorded`. Nothing here ships with the package.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]  # of the checkout
