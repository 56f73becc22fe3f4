// Bug       a float4 that begins at the second float
// Launch    -g 1 -b 8 -a f32[64] -a f32[64]=unwritten
// Expected  memcheck misaligned
// NVIDIA    memcheck

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    const float4 four = *reinterpret_cast<const float4*>(in + 4 * t + 1);  // <-
    *reinterpret_cast<float4*>(out + 4 * t) = four;  // <-
}
