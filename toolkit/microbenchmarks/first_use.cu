// Short launches, by what they use for the first time: parameters, memory, code.

struct Numbers { int of[PARAMETERS]; };

// One parameter of each line of 64 bytes is read.
extern "C" __global__ void read_parameters(int* out, Numbers numbers)
{
    int sum = 0;
#pragma unroll
    for (int k = 0; k < PARAMETERS; k += 16) sum += numbers.of[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// COUNT loads wait for each other. Neighbouring threads read neighbouring words. The memory has zeros.
extern "C" __global__ void loads_in_a_row(unsigned* out, const unsigned* memory)
{
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) at += memory[(k << 20) + at];
    out[at] = at;
}

// COUNT multiply-adds that wait for each other, without a loop.
extern "C" __global__ void straight_code(float* out, float x)
{
#pragma unroll
    for (int k = 0; k < COUNT; ++k) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
