"""Tilings of rungs of the ladder, written by hand."""

from analysis.access import Tiling

NAIVE = Tiling(block_m=32, block_n=32)
TILED = Tiling(block_m=32, block_n=32, block_k=32)
COARSENED_1D = Tiling(block_m=64, block_n=64, block_k=4, thread_m=16)
COARSENED_2D = Tiling(block_m=128, block_n=128, block_k=8, thread_m=8, thread_n=8)
