// Bug       blocks add to one place without an atomic operation
// Launch    -g 4 -b 32 -a f32[128] -a f32[1]=zeros
// Expected  racecheck RAW
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    if (threadIdx.x == 0) *out += in[blockIdx.x];  // <-
}
