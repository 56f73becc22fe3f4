// Bug       a buffer that was never allocated
// Launch    -g 1 -b 32 -a i64=0 -a f32[32]=unwritten
// Expected  memcheck out of bounds
// NVIDIA    memcheck

extern "C" __global__ void planted(long long in, float* out)
{
    out[threadIdx.x] = reinterpret_cast<const float*>(in)[threadIdx.x];  // <-
}
