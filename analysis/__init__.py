"""The analysis behind the profiler, usable on its own: pure functions and frozen records.

    from analysis import access, coalescing, devices, intensity, occupancy, roofline

    problem      the product: `Gemm(m=, n=, k=)`, `parse_shape("4096")`
    geometry     the launch: `Geometry(grid=, block=)`
    grid         order in which blocks compute the tiles of C: `ROW_MAJOR`, `in_bands` (traffic)
    devices      one record per GPU, every field with its source
    access       what a tiling loads and stores: `access_counts(Tiling(...), problem)`
    coalescing   addresses of a warp -> `sectors`, `lines`, `shared_wavefronts`, `pattern`
    intensity    FLOP per byte, by what is counted as a byte
    roofline     ceilings, the ridge point, attainable FLOP/s
    occupancy    blocks per SM and every binding limit; `waves`
    theory       all of the above for one launch: `theory(counts, patterns, device)`
    gap          steps between a predicted and a measured time: `steps_to_measured`
    rungs        why one rung beats another: `step(before, after, device)`
    statistics   the median of timings and its interval
    rounding     how far a correct float32 product may be off; `compare`
    result       the records that profile.json holds
    errors       all exceptions that this project raises

This file imports nothing: each submodule loads on first use.
"""
