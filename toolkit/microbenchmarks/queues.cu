// Each warp makes COUNT requests of global memory, one after the other, and notes the clocks of its SM
// that they took it, and those until a load of shared memory behind them is back.
// KIND 0: loads of 32 lines that L1 has; 1: copies of such lines to shared memory; 2: copies of 64 bytes of 8 lines, past L1.
extern "C" __global__ void requests(const float* data, long long* noted)
{
    __shared__ float buffer[32 * ROW];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned shared = unsigned(__cvta_generic_to_shared(buffer));
    const unsigned row = shared + lane * ROW * 4;
    const float* const own = data + lane * 32;  // a line
    float value[COUNT], last, kept = 0.0f;
    for (int k = 0; k < COUNT; ++k) kept += own[k];
    for (unsigned k = threadIdx.x; k < 32 * ROW; k += blockDim.x) buffer[k] = kept;
    for (int turn = 0; turn < 3; ++turn) {  // the first ones for the caches
        long long before, after, back;
        __syncthreads();
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(before) :: "memory");
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (KIND == 0) asm volatile("ld.global.f32 %0, [%1];" : "=f"(value[k]) : "l"(own + k) : "memory");
            if (KIND == 1) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(row + 16 * k), "l"(own + k) : "memory");
            if (KIND == 2)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                             :: "r"(shared + lane * 16 + 512 * k), "l"(data + lane / 4 * 32 + lane % 4 * 4) : "memory");
        }
        asm volatile("pmevent 0;");  // a fence to the compiler's scheduler
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(after) :: "memory");
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(last) : "r"(shared + lane * 4) : "memory");
        if (last == 1.25f) buffer[1] = 2.0f;
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(back) :: "memory");
        asm volatile("pmevent 0;");
        if (KIND != 0) asm volatile("cp.async.wait_all;" ::: "memory");
        float all = 0.0f;
#pragma unroll
        for (int k = 0; k < COUNT; ++k)
            if (KIND == 0) all += value[k];
        if (all == 1.25f) buffer[2] = 3.0f;
        if (lane == 0) {
            noted[2 * warp] = after - before;
            noted[2 * warp + 1] = back - after;
        }
    }
}
