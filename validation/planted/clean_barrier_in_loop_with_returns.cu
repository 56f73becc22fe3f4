// Bug       none: in each turn of a loop some threads leave the kernel before its barriers
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    for (int last = 63; last > 3; last -= 7) {
        if (t > last) {
            if (t % 3 == 0) out[t] = last;
            return;
        }
        copy[t] = in[t] + last;
        __syncthreads();
        out[t] += copy[last - t];
        __syncthreads();
    }
    out[t] += 1.0f;
}
