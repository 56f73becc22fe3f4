// A look at eight rows of A and eight columns of B. One block: whether some k has elements that are large in both, as almost
// all data have. If it does not, equilibration may be needed, and second_pass.cu looks at all elements. Another block: how
// many terms carry a sum, for multiply_parts.cu.

#include "terms.cuh"

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

// The spread of a vector is the sum of its magnitudes over the largest one: as many elements of that size would give it.
constexpr float LEAST_OF_MANY = 1.0f / 16;  // of each vector, for each k: four for 64
constexpr float MOST_OF_FEW = 4.0f;         // of all vectors of A, or of B
constexpr unsigned LOW_BITS = 0x1fff;       // of an element that FP16 has not

// Of each vector of A (0) and of B (1), and of each warp: the largest magnitude, and the sum of all.
struct Spreads {
    unsigned largest[2][WARPS][SAMPLES];
    float sum[2][WARPS][SAMPLES];
};

// Called by threads 0 to 15, with a vector each.
__device__ Terms terms_of(const Spreads& of, int K)
{
    const int side = threadIdx.x / SAMPLES, sample = threadIdx.x % SAMPLES;
    unsigned largest = 0;
    float sum = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) largest = max(largest, of.largest[side][warp][sample]), sum += of.sum[side][warp][sample];
    const bool counts = largest > 0 && largest < INFINITE;
    const float spread = sum / __uint_as_float(largest);
    const unsigned all = (1u << 2 * SAMPLES) - 1, of_a = (1u << SAMPLES) - 1;
    const unsigned usable = __ballot_sync(all, counts), narrow = __ballot_sync(all, counts && spread < MOST_OF_FEW);
    const auto are_narrow = [&](unsigned vectors) { return (usable & vectors) != 0 && (usable & vectors) == (narrow & vectors); };
    if (are_narrow(of_a) || are_narrow(all - of_a)) return FEW;
    return __any_sync(all, counts && spread < LEAST_OF_MANY * K) ? SOME : MANY;
}

// Not MANY unless both operands have low parts: sums that float32 holds exactly, such as those of integers, stay exact.
template <typename A, typename B> __device__ void find_terms(const A& a, const B& b, unsigned* terms)
{
    __shared__ Spreads of;
    unsigned largest[2] = {}, low_bits[2] = {};
    float sum[2] = {};
#pragma unroll 8
    for (int k = threadIdx.x / SAMPLES; k < a.K; k += STEP) {
        const float x[2] = {sampled(a, k), sampled(b, k)};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            largest[side] = max(largest[side], magnitude(x[side])), sum[side] += fabsf(x[side]);
            low_bits[side] |= __float_as_uint(x[side]) & LOW_BITS;
        }
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        for (int other = SAMPLES; other < 32; other *= 2) {
            largest[side] = max(largest[side], __shfl_xor_sync(0xffffffff, largest[side], other));
            sum[side] += __shfl_xor_sync(0xffffffff, sum[side], other);
        }
        if (threadIdx.x % 32 >= SAMPLES) continue;
        of.largest[side][threadIdx.x / 32][threadIdx.x % SAMPLES] = largest[side];
        of.sum[side][threadIdx.x / 32][threadIdx.x % SAMPLES] = sum[side];
    }
    const bool has_low_a = __syncthreads_or(low_bits[0]), has_low_b = __syncthreads_or(low_bits[1]);
    if (threadIdx.x >= 2 * SAMPLES) return;
    const Terms found = terms_of(of, a.K);
    if (threadIdx.x == 0) *terms = found == MANY && !(has_low_a && has_low_b) ? SOME : found;
}
