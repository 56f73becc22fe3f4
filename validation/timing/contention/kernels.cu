// Kernels whose atomic operations at L2 meet, and kernels that read constants by an index in a register.
// contended.py has their launches, recorded/contended_h100.json what an H100 took.

__constant__ float table[16384];

extern "C" {

// Every thread adds to one float.
__global__ void one_sum(float *sum, int times) {
    for (int k = 0; k < times; k++) atomicAdd(sum, 1.0f);
}

// Every warp adds to the 32 floats of one line.
__global__ void one_line(float *sums, int times) {
    for (int k = 0; k < times; k++) atomicAdd(&sums[threadIdx.x % 32], 1.0f);
}

// As many additions, to an address of their own each.
__global__ void own_words(float *sums, int times) {
    for (int k = 0; k < times; k++) atomicAdd(&sums[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x], 1.0f);
}

// A histogram in global memory; the bin is some low bits of the key.
__global__ void bins(unsigned *counts, const unsigned *keys, int n, unsigned mask) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[keys[i] & mask], 1u);
}

// Sums and sums of squares of the columns of a matrix, one warp per row: each warp adds to all columns.
__global__ void columns(float *sums, const float *matrix, int rows, int width) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    for (int i = threadIdx.x % 32; i < width; i += 32) {
        const float x = matrix[(size_t)row * width + i];
        atomicAdd(&sums[i], x);
        atomicAdd(&sums[width + i], x * x);
    }
}

// The same, with the sums of a block in shared memory first.
__global__ void columns_of_blocks(float *sums, const float *matrix, int rows, int width) {
    extern __shared__ float of_block[];
    for (int i = threadIdx.x; i < 2 * width; i += blockDim.x) of_block[i] = 0;
    __syncthreads();
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows)
        for (int i = threadIdx.x % 32; i < width; i += 32) {
            const float x = matrix[(size_t)row * width + i];
            atomicAdd(&of_block[i], x);
            atomicAdd(&of_block[width + i], x * x);
        }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * width; i += blockDim.x) atomicAdd(&sums[i], of_block[i]);
}

// A table in constant memory, of which the lanes of a warp read `words` words at a time.
__global__ void look_up(float *out, int words, int mask) {
    const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < 1024; i++) sum += table[(i + k % words) & mask];
    out[k] = sum;
}

// The same, at an index that all threads share.
__global__ void look_up_alike(float *out, int mask) {
    const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 1024; i += 8) {
        const int j = i & mask;
#pragma unroll
        for (int u = 0; u < 8; u++) sum += table[j + u];
    }
    out[k] = sum;
}
}
