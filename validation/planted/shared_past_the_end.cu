// Bug       dynamic shared memory for fewer elements than are used
// Launch    -g 1 -b 64 --shared 128 -a f32[64] -a f32[64]=unwritten
// Expected  memcheck out of bounds
// NVIDIA    memcheck

extern "C" __global__ void planted(const float* in, float* out)
{
    extern __shared__ float copy[];
    const int t = threadIdx.x;
    copy[t * 256] = in[t];  // <-
    __syncthreads();
    out[t] = copy[t * 256];  // <-
}
