// Bug       the first thread writes in front of the buffer
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  memcheck out of bounds
// NVIDIA    memcheck

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    out[t - 1] = in[t];  // <-
}
