// im2col for a 3 x 3 convolution, one row of 9 x C values per pixel.
// The flaw: neighbouring threads are neighbouring pixels, whose rows are far apart in the result.
#include <cstdint>

__global__ void im2col_kernel(const float *image, float *columns, int channels, int height, int width) {
    const int kernel = 3;
    const int pixels = height * width;
    const int row = channels * kernel * kernel;
    for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < pixels * row;
         index += gridDim.x * blockDim.x) {
#if FIXED
        const int pixel = index / row;
        const int k = index % row;
#else
        const int pixel = index % pixels;
        const int k = index / pixels;
#endif
        const int c = k / 9, ky = k / 3 % 3, kx = k % 3;
        const int y = pixel / width + ky - 1;
        const int x = pixel % width + kx - 1;
        float value = 0;
        if (y >= 0 && y < height && x >= 0 && x < width) value = image[(c * height + y) * width + x];
        columns[pixel * row + k] = value;
    }
}

int main() {
    int channels = 32, height = 224, width = 224;
    float *image, *columns;
    cudaMalloc(&image, sizeof(float) * channels * height * width);
    cudaMalloc(&columns, sizeof(float) * channels * 9 * height * width);
    cudaMemset(image, 0, sizeof(float) * channels * height * width);
    int threads = 256;
    int blocks = 132 * 8;
    im2col_kernel<<<blocks, threads>>>(image, columns, channels, height, width);
    cudaDeviceSynchronize();
}
