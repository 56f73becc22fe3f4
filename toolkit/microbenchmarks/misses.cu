// Rounds of a block: each warp loads 16 bytes per lane, of lines whose sectors L1 lacks and L2 has, puts STORES
// words of each lane into shared memory when they are here, and waits for the others.
extern "C" __global__ void rounds(const char* data, const int* offsets, int turns, long long* noted)
{
    __shared__ float buffer[4 * 512];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned own = unsigned(__cvta_generic_to_shared(buffer)) + 4 * threadIdx.x;
    const char* at = data + warp * unsigned(offsets[32]) + offsets[lane];
    const int step = offsets[33];
    __syncthreads();
    long long before, after;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(before) :: "memory");
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        float a, b, c, d;
        asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(at) : "memory");
        at += step;
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(own), "f"(a) : "memory");
        if (STORES == 4)
            asm volatile("st.shared.f32 [%0 + 2048], %1; st.shared.f32 [%0 + 4096], %2;"
                         "st.shared.f32 [%0 + 6144], %3;" :: "r"(own), "f"(b), "f"(c), "f"(d) : "memory");
        __syncthreads();
    }
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(after) :: "memory");
    if (lane == 0) noted[warp] = after - before;
}
