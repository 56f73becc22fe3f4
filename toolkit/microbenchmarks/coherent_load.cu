// Coherent loads of one number by all warps, LOADS each.
extern "C" __global__ void load_one(float *sink, const float *number)
{
    float sum = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < LOADS; i++) {
        float x;
        asm volatile("ld.relaxed." SCOPE ".global.f32 %0, [%1];" : "=f"(x) : "l"(number) : "memory");
        sum += x * sum;
    }
    if (sum == 12345.5f) *sink = sum;
}
