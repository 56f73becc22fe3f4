// Bug       none: segments of 8 lanes, each with the mask of its own lanes
// Launch    -g 1 -b 56 -a f32[56] -a f32[56]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    const unsigned mask = 0xffu << t % 32 / 8 * 8;
    float value = in[t];
    if (t / 8 % 2 == 0) {
        value += __shfl_xor_sync(mask, value, 4, 8);
        value += __shfl_down_sync(mask, value, 3, 8);
        value = __shfl_sync(mask, value, t + 1, 8);
    }
    out[t] = value;
}
