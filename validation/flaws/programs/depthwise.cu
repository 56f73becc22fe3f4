// Depthwise 3 x 3 convolution of NHWC images; the weights of 64 channels are in constant memory.
// The flaw: lanes are channels, so each lane of a warp reads another constant.
#include <cuda_runtime.h>

namespace {
constexpr int kChannels = 64;
constexpr int kTaps = 9;
__constant__ float c_weights[kChannels * kTaps];

__global__ void depthwise_conv(const float *__restrict__ input, const float *__restrict__ weights,
                               float *__restrict__ output, int height, int width) {
    const int c = threadIdx.x;
    const int x = blockIdx.x * blockDim.y + threadIdx.y;
    const int y = blockIdx.y;
    const int n = blockIdx.z;
    if (x >= width) return;
#if FIXED
    float w[kTaps];
#pragma unroll
    for (int k = 0; k < kTaps; ++k) w[k] = weights[k * kChannels + c];
#endif
    float sum = 0.f;
#pragma unroll
    for (int ky = -1; ky <= 1; ++ky) {
#pragma unroll
        for (int kx = -1; kx <= 1; ++kx) {
            const int iy = y + ky, ix = x + kx;
            if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
            const float v = input[((n * height + iy) * width + ix) * kChannels + c];
#if FIXED
            sum += v * w[(ky + 1) * 3 + kx + 1];
#else
            sum += v * c_weights[c * kTaps + (ky + 1) * 3 + kx + 1];
#endif
        }
    }
    output[((n * height + y) * width + x) * kChannels + c] = sum;
}
}  // namespace

int main() {
    const int batch = 8, height = 112, width = 112;
    const size_t count = (size_t)batch * height * width * kChannels;
    float *input, *weights, *output;
    cudaMalloc(&input, count * sizeof(float));
    cudaMalloc(&output, count * sizeof(float));
    cudaMalloc(&weights, kChannels * kTaps * sizeof(float));
    float host_weights[kChannels * kTaps];
    for (int i = 0; i < kChannels * kTaps; ++i) host_weights[i] = 0.01f * (i % 17);
    cudaMemcpyToSymbol(c_weights, host_weights, sizeof(host_weights));
    cudaMemcpy(weights, host_weights, sizeof(host_weights), cudaMemcpyHostToDevice);
    const dim3 block(kChannels, 4);
    const dim3 grid((width + 3) / 4, height, batch);
    depthwise_conv<<<grid, block>>>(input, weights, output, height, width);
    cudaDeviceSynchronize();
    return 0;
}
