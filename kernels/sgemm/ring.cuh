    // In the kernels of rungs 13 to 19: a ring of STAGES pairs of tiles, and two barriers for each pair.
    extern __shared__ __align__(1024) char ring_of_tiles[];
    __shared__ __align__(8) unsigned long long full_barriers[STAGES], empty_barriers[STAGES];
    unsigned ring = __cvta_generic_to_shared(ring_of_tiles);
    unsigned full = __cvta_generic_to_shared(full_barriers), empty = __cvta_generic_to_shared(empty_barriers);
    asm volatile("" : "+r"(ring), "+r"(full), "+r"(empty));  // computed here, once
