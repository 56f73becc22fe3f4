// Kernels whose MUFU and FCHK validation/census/special.py patches.
extern "C" __global__ void special(unsigned *out, unsigned first, unsigned step, unsigned count) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    float r, x = __uint_as_float(first + t * step);
    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    out[t] = __float_as_uint(r);
}

extern "C" __global__ void special_of(unsigned *out, const unsigned *in, unsigned count) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    float r, x = __uint_as_float(in[t]);
    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    out[t] = __float_as_uint(r);
}

extern "C" __global__ void slow_path(unsigned *out, const uint2 *in, unsigned count) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    uint2 x = in[t];
    out[t] = __float_as_uint(__fdiv_rn(__uint_as_float(x.x), __uint_as_float(x.y)));
}
