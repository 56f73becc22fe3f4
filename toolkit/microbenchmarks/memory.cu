// What global memory holds before it is measured, and what is measured by events.

// Lines that form one ring: each begins with the address of the next. A step below 0 takes them
// in a random order (a full period of a linear congruence; `lines` is a power of two then).
extern "C" __global__ void link(char* memory, unsigned lines, int step)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x) {
        const unsigned next = step < 0 ? i * 1664525u + 1013904223u & lines - 1
                                       : unsigned((size_t(i) + step) % lines);
        *(char**)(memory + size_t(i) * 128) = memory + size_t(next) * 128;
    }
}

// Cycles of a load of each of some lines, one after the other, from L2; each block begins elsewhere.
extern "C" __global__ void line_latencies(long long* cycles, const char* memory, int lines, int pitch)
{
    __shared__ volatile unsigned kept;
    for (int n = 0; n < lines; ++n) {
        const int i = (n + blockIdx.x * 7) % lines;
        const char* line = memory + size_t(i) * pitch;
        unsigned value;
        const long long start = clock64();
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(line) : "memory");
        kept = value;  // waits for the load
        const long long stop = clock64();
        cycles[blockIdx.x * lines + i] = stop - start;
    }
}

extern "C" __global__ void read_all(float* out, const float4* in, size_t pieces)
{
    float sum = 0.0f;
#pragma unroll 4
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < pieces; i += gridDim.x * size_t(blockDim.x)) {
        const float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1.2345f) out[0] = sum;  // never true, and the compiler does not know
}
