// Bug       none: a reduction of a warp of 20 threads, whose clamp is the last of them
// Launch    -g 1 -b 52 -a f32[52] -a f32[52]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x, last = t < 32 ? 31 : 19;
    const unsigned mask = __ballot_sync(0xffffffff, true);
    float sum = in[t];
    for (int distance = 1; distance < 32; distance *= 2)
        asm volatile("{.reg .pred p; .reg .f32 other;"
                     "shfl.sync.down.b32 other|p, %0, %1, %2, %3; @p add.f32 %0, %0, other;}"
            : "+f"(sum)
            : "r"(distance), "r"(last), "r"(mask));
    if (t % 32 == 0) out[t / 32] = sum;
}
