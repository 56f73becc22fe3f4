// A look at eight rows of A and eight columns of B: whether some k has elements that are large in both, as almost all data
// have. If it does not, equilibration may be needed, and second_pass.cu looks at all elements.

constexpr int SAMPLES = 8, STEP = THREADS / SAMPLES;  // vectors, and k of each at a time
constexpr int STEPS_A_LOOK = 8;                       // whose loads are outstanding together

template <typename One> __device__ float sampled(const One& one, int k)
{
    const int sample = threadIdx.x % SAMPLES;
    // along: spread over all rows; across: neighbours, which are one sector of each k
    const int vector = One::along ? int((long long)sample * one.vectors / SAMPLES) : min(one.vectors - 1, one.vectors / 2 / SAMPLES * SAMPLES + sample);
    return k >= one.K ? 0.0f : __ldg(One::along ? one.at(vector, k) : one.at(k, vector));
}

template <typename A, typename B> __device__ bool samples_suffice(const A& a, const B& b)
{
    __shared__ unsigned largest[2][SAMPLES];
    const int first = threadIdx.x / SAMPLES, sample = threadIdx.x % SAMPLES;
    if (threadIdx.x < 2 * SAMPLES) largest[threadIdx.x / SAMPLES][sample] = 0;
    __syncthreads();
    unsigned in_a = 0, in_b = 0;
#pragma unroll 8
    for (int k = first; k < a.K; k += STEP)
        in_a = max(in_a, magnitude(sampled(a, k))), in_b = max(in_b, magnitude(sampled(b, k)));
    atomicMax(&largest[0][sample], in_a), atomicMax(&largest[1][sample], in_b);
    __syncthreads();
    const unsigned of_a = largest[0][sample], of_b = largest[1][sample];
    const float inverse_a = power_of_two(-root_exponent(of_a)), inverse_b = power_of_two(-root_exponent(of_b));
    for (int begin = first; begin - first < a.K; begin += STEPS_A_LOOK * STEP) {
        float x[STEPS_A_LOOK], y[STEPS_A_LOOK];
#pragma unroll
        for (int i = 0; i < STEPS_A_LOOK; ++i) x[i] = sampled(a, begin + i * STEP), y[i] = sampled(b, begin + i * STEP);
        int largest = NO_EXPONENT;
#pragma unroll
        for (int i = 0; i < STEPS_A_LOOK; ++i) {
            int of_x = of_a >= INFINITE ? NO_EXPONENT : exponent_of(magnitude(x[i] * inverse_a * inverse_a));
            int of_y = of_b >= INFINITE ? NO_EXPONENT : exponent_of(magnitude(y[i] * inverse_b * inverse_b));
#pragma unroll
            for (int other = SAMPLES / 2; other; other /= 2) {
                of_x = max(of_x, __shfl_xor_sync(0xffffffff, of_x, other));
                of_y = max(of_y, __shfl_xor_sync(0xffffffff, of_y, other));
            }
            largest = max(largest, of_x + of_y);
        }
        if (__syncthreads_or(largest >= LEAST_EXPONENT)) return true;
    }
    return false;
}
