// Bug       waits for all copies but the last, and reads the last
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

#define COPY(to, from)                                                                  \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::                          \
                 "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory")

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float first[64], second[64];
    const int t = threadIdx.x;
    COPY(&first[t], &in[t]);
    COMMIT();
    COPY(&second[t], &in[63 - t]);  // <-
    COMMIT();
    WAIT(1);
    __syncthreads();
    out[t] = first[63 - t] + second[63 - t];  // <-
}
