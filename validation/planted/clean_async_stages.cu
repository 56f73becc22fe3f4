// Bug       none: two stages, each waited for before it is read
// Launch    -g 1 -b 64 -a f32[256] -a f32[64]=unwritten
// Expected  nothing
// NVIDIA    none

#define COPY(to, from)                                                                  \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::                          \
                 "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory")

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float stage[2][64];
    const int t = threadIdx.x;
    float sum = 0.0f;
    COPY(&stage[0][t], &in[t]);
    COMMIT();
    for (int step = 0; step < 4; ++step) {
        if (step < 3) COPY(&stage[(step + 1) % 2][t], &in[64 * (step + 1) + t]);
        COMMIT();
        WAIT(1);
        __syncthreads();
        sum += stage[step % 2][63 - t];
        __syncthreads();
    }
    out[t] = sum;
}
