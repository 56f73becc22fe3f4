// Scales of rows and columns: powers of four, which are exact to apply. A scale is kept by its root, so that
// x / root / root and sum * root * root stay within the range of float wherever their results do.

// Bits of |x|, which order as magnitudes do; at least INFINITE for Inf and NaN.
constexpr unsigned INFINITE = 0x7f800000;
__device__ unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffff; }
__device__ float power_of_two(int exponent) { return __int_as_float((127 + exponent) << 23); }

__device__ float inverse_of(float power) { return __int_as_float((254 << 23) - __float_as_int(power)); }

// Exponent of the root of a row whose largest magnitude is given: largest / root^2 is in [2^13, 2^15), within FP16.
__device__ int root_exponent(unsigned largest)
{
    if (largest == 0) return 0;
    const int exponent = largest >> 23 ? int(largest >> 23) - 127 : -118 - __clz(largest);  // of a subnormal number
    return (exponent - 13) >> 1;
}

// The root as it is stored: NaN marks a row with Inf or NaN: special.cuh.
__device__ float stored_root(unsigned largest)
{
    return largest >= INFINITE ? __uint_as_float(0x7fffffff) : power_of_two(root_exponent(largest));
}
