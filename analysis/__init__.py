"""The analysis behind the profiler, usable on its own: pure functions and frozen records.

    from analysis import access, coalescing, devices, intensity, occupancy, roofline

    problem      the product: `Gemm(m=, n=, k=)`, `parse_shape("4096")`
    geometry     the launch: `Geometry(grid=, block=)`
    devices      one record per GPU, every field with its source
    access       loads and stores of a tiling: `access_counts(Tiling(...), problem)`
    coalescing   addresses of a warp -> `sectors`, `lines`, `shared_wavefronts`, `pattern`
    intensity    FLOP per byte, for three definitions of the bytes
    roofline     ceilings, the ridge point, attainable FLOP/s
    occupancy    blocks per SM and every binding limit; `waves`
    theory       all of the above for one launch: `theory(counts, patterns, device)`
    rounding     error bound of a correct float32 product; `compare`
    errors       all exceptions that this project raises
    hardware/    constants of the timing model, each with its source
    sm/          the model of one SM
    timing/      the predicted time of a launch: `predict`
    traffic/     traffic at L2 and DRAM; `grid`: order in which blocks compute the tiles of C
    records/     the records that profile.json holds; `counters`: names, classes and tolerances
    comparison/  `gap`: steps between a predicted and a measured time; `steps`: reasons why one rung
                 beats another; `statistics`: the median of timings and its interval; `scorecard`

This file imports nothing: each submodule loads on first use.
"""
