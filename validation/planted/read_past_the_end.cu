// Bug       no guard where the size is no multiple of the block
// Launch    -g 2 -b 64 -a f32[100] -a f32[128]=unwritten
// Expected  memcheck out of bounds
// NVIDIA    memcheck

extern "C" __global__ void planted(const float* in, float* out)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = in[i];  // <-
}
