// Copy WIDTH floats, of row `row` of a piece that has so many rows; zeros beyond, where nothing is
// read. Pieces that are WHOLE need no guard.
template <bool WHOLE, int WIDTH>
__device__ void copy(float* to, const float* from, int row, int rows)
{
    const unsigned address = __cvta_generic_to_shared(to);
    if (WHOLE && WIDTH == 4)  // cg: past L1, every float is copied once
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address), "l"(from) : "memory");
    else if (WHOLE)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(address), "l"(from) : "memory");
    else if (WIDTH == 4)
        asm volatile("{ .reg .pred beyond; setp.ge.s32 beyond, %2, %3;"
                     "cp.async.cg.shared.global [%0], [%1], 16, beyond; }"
                     :: "r"(address), "l"(from), "r"(row), "r"(rows) : "memory");
    else
        asm volatile("{ .reg .pred beyond; setp.ge.s32 beyond, %2, %3;"
                     "cp.async.ca.shared.global [%0], [%1], 4, beyond; }"
                     :: "r"(address), "l"(from), "r"(row), "r"(rows) : "memory");
}

