// Bug       adds to an output that nobody set to zero
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  initcheck uninitialized read
// NVIDIA    initcheck

extern "C" __global__ void planted(const float* in, float* out)
{
    out[threadIdx.x] += in[threadIdx.x];  // <-
}
