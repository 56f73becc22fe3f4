// Bug       counts in shared memory that nobody has set to zero
// Launch    -g 1 -b 256 -a u8[4096] -a i32[256]=zeros
// Expected  initcheck uninitialized read
// NVIDIA    none

extern "C" __global__ void planted(const unsigned char* in, int* out)
{
    __shared__ int counts[256];
    for (int i = threadIdx.x; i < 4096; i += 256) atomicAdd(&counts[in[i]], 1);  // <-
    __syncthreads();
    if (threadIdx.x < 100) out[threadIdx.x] += counts[threadIdx.x];  // random bytes are below 100
}
