"""The code that the default run executes: of every file, for sm_90 and the architectures below.

In it is every opcode with its modifiers that any file has for any architecture, which
test_corpus_compiles.py checks in the exhaustive run. A file that is not named here is in the sample
for all architectures.
"""

from __future__ import annotations

USUAL = "sm_90"
ALSO: dict[str, tuple[str, ...]] = {
    # The ladder: a rung per architecture in turn, and what only the code of one has.
    "01_one_block.cu": ("sm_75",),
    "02_naive_uncoalesced.cu": ("sm_80",),
    "03_naive_coalesced.cu": ("sm_86",),
    "04_tiled.cu": ("sm_89",),
    "05_coarsened_1d.cu": ("sm_120",),
    "06_coarsened_2d.cu": ("sm_100",),
    "07_vectorized.cu": ("sm_120",),
    "08_conflict_free.cu": ("sm_75",),
    "09_warp_tiled.cu": ("sm_80",),
    "10_double_buffered.cu": ("sm_86",),
    "11_async_copy.cu": ("sm_89",),
    "12_wide_thread_tile.cu": (),
    "13_bulk_copy.cu": ("sm_100",),
    "14_fenced.cu": ("sm_120",),
    "15_rasterised.cu": (),
    "16_stream_k.cu": (),
    "17_split_k.cu": (),
    "18_tall_thread_tile.cu": (),
    "19_realigned.cu": ("sm_100",),
    "20_tf32_parts.cu": ("sm_120",),
    "21_fp16_parts.cu": ("sm_80",),
    # The corpus.
    "async_copy.cu": ("sm_89",),
    "async_partial.cu": (),
    "atomic_vectors.cu": (),
    "atomics.cu": ("sm_75", "sm_100", "sm_120"),
    "bits.cu": ("sm_120",),
    "bulk_copies.cu": (),
    "calls.cu": (),
    "clusters.cu": ("sm_120",),
    "constant_divisors.cu": ("sm_120",),
    "conversions.cu": ("sm_75", "sm_80"),
    "cooperation.cu": ("sm_75", "sm_100", "sm_120"),
    "divergence.cu": ("sm_75",),
    "double_math.cu": ("sm_75",),
    "float_math.cu": ("sm_100",),
    "half.cu": (),
    "integers.cu": ("sm_120",),
    "launches.cu": ("sm_75", "sm_100", "sm_120"),
    "memory.cu": ("sm_75",),
    "reduce.cu": ("sm_100",),
    "scan_sort.cu": ("sm_100", "sm_120"),
    "stencil.cu": ("sm_100",),
    "transpose.cu": (),
    "warp.cu": (),
    "widths.cu": ("sm_75",),
}


def in_sample(file: str, arch: str) -> bool:
    """True if the code of `file` for `arch`, such as "sm_86", is in the sample."""
    return arch == USUAL or arch in ALSO.get(file, (arch,))


def in_small_sample(file: str, arch: str) -> bool:
    """The same with each rung for one architecture."""
    return arch in (ALSO[file] or (USUAL,))
