// Sums of splits, added in the order of k by one thread, so that each run gives the same bits.

__device__ void add(float& sum, float other) { sum += other; }
__device__ void add(float4& sum, float4 other)
{
    sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
}

// Adds `splits` values to each of COUNT totals, whose values of a split are `apart` from each other. AT_ONCE splits are on
// their way at a time, also the last ones: what is not there is zero.
template <int AT_ONCE, int COUNT, typename T>
__device__ void add_in_order(T (&total)[COUNT], const T* from, int apart, int split_step, int splits)
{
#pragma unroll 1
    for (int first = 0; first < splits; first += AT_ONCE, from += AT_ONCE * size_t(split_step)) {
        T value[AT_ONCE][COUNT] = {};
#pragma unroll
        for (int s = 0; s < AT_ONCE; ++s)
            if (first + s < splits)
#pragma unroll
                for (int n = 0; n < COUNT; ++n) value[s][n] = __ldcg(from + s * size_t(split_step) + n * apart);
#pragma unroll
        for (int s = 0; s < AT_ONCE; ++s)
#pragma unroll
            for (int n = 0; n < COUNT; ++n) add(total[n], value[s][n]);
    }
}
