// A look at eight rows of A and eight columns of B: whether some k has elements that are large in both, as almost all data
// have. If it does not, equilibration may be needed, and second_pass.cu looks at all elements.

constexpr int SAMPLES = 8, STEP = THREADS / SAMPLES;  // vectors, and k of each at a time
constexpr int MOST_LOOKS = 8;                         // whose loads are outstanding together

template <typename One> __device__ float sampled(const One& one, int k)
{
    const int sample = threadIdx.x % SAMPLES;
    // along: spread over all rows; across: neighbours, which are one sector of each k
    const int vector = One::along ? int((long long)sample * one.vectors / SAMPLES) : min(one.vectors - 1, one.vectors / 2 / SAMPLES * SAMPLES + sample);
    return k >= one.K ? 0.0f : __ldg(One::along ? one.at(vector, k) : one.at(k, vector));
}

struct Sampled { unsigned largest[2][SAMPLES]; };  // magnitude of each vector, of A and of B

// Whether one of LOOKS * STEP k from `begin` on has elements that are large in both.
template <int LOOKS, typename A, typename B> __device__ bool finds_large(const A& a, const B& b, int begin, const Sampled& of)
{
    const int k = begin + threadIdx.x / SAMPLES, sample = threadIdx.x % SAMPLES;
    const unsigned of_a = of.largest[0][sample], of_b = of.largest[1][sample];
    const float inverse_a = power_of_two(-root_exponent(of_a)), inverse_b = power_of_two(-root_exponent(of_b));
    float x[LOOKS], y[LOOKS];
#pragma unroll
    for (int i = 0; i < LOOKS; ++i) x[i] = sampled(a, k + i * STEP), y[i] = sampled(b, k + i * STEP);
    int largest = NO_EXPONENT;
#pragma unroll
    for (int i = 0; i < LOOKS; ++i) {
        int in_a = of_a >= INFINITE ? NO_EXPONENT : exponent_of(magnitude(x[i] * inverse_a * inverse_a));
        int in_b = of_b >= INFINITE ? NO_EXPONENT : exponent_of(magnitude(y[i] * inverse_b * inverse_b));
#pragma unroll
        for (int other = SAMPLES / 2; other; other /= 2) {
            in_a = max(in_a, __shfl_xor_sync(0xffffffff, in_a, other));
            in_b = max(in_b, __shfl_xor_sync(0xffffffff, in_b, other));
        }
        largest = max(largest, in_a + in_b);
    }
    return __syncthreads_or(largest >= LEAST_EXPONENT);
}

template <typename A, typename B> __device__ bool samples_suffice(const A& a, const B& b)
{
    __shared__ Sampled of;
    const int first = threadIdx.x / SAMPLES, sample = threadIdx.x % SAMPLES;
    if (threadIdx.x < 2 * SAMPLES) of.largest[threadIdx.x / SAMPLES][sample] = 0;
    __syncthreads();
    unsigned in_a = 0, in_b = 0;
#pragma unroll 8
    for (int k = first; k < a.K; k += STEP)
        in_a = max(in_a, magnitude(sampled(a, k))), in_b = max(in_b, magnitude(sampled(b, k)));
    atomicMax(&of.largest[0][sample], in_a), atomicMax(&of.largest[1][sample], in_b);
    __syncthreads();
    if (finds_large<1>(a, b, 0, of)) return true;  // in almost all data
    for (int begin = STEP; begin < a.K; begin += MOST_LOOKS * STEP)
        if (finds_large<MOST_LOOKS>(a, b, begin, of)) return true;
    return false;
}
