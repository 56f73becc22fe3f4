// Prices of European options by Black and Scholes. No expected answer: DRAM and special functions are close.
#include <cmath>
#include <cuda_runtime.h>

__device__ inline float cnd(float d) {
    const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    const float value = 0.39894228f * expf(-0.5f * d * d) *
        (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - value : value;
}

__global__ void black_scholes(float *call, float *put, const float *price, const float *strike,
                              const float *years, float rate, float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i];
    float root = sqrtf(t);
    float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float discount = expf(-rate * t);
    call[i] = s * cnd(d1) - x * discount * cnd(d2);
    put[i] = x * discount * (1.0f - cnd(d2)) - s * (1.0f - cnd(d1));
}

int main() {
    const int n = 8000000;
    float *call, *put, *price, *strike, *years;
    cudaMalloc(&call, n * sizeof(float));
    cudaMalloc(&put, n * sizeof(float));
    cudaMalloc(&price, n * sizeof(float));
    cudaMalloc(&strike, n * sizeof(float));
    cudaMalloc(&years, n * sizeof(float));
    black_scholes<<<(n + 255) / 256, 256>>>(call, put, price, strike, years, 0.02f, 0.3f, n);
    cudaDeviceSynchronize();
}
