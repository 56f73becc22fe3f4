// Mandelbrot set, at most 256 iterations per pixel.
// The flaw: literals without f make the arithmetic FP64.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#if FIXED
#define TWO 2.0f
#define FOUR 4.0f
#else
#define TWO 2.0
#define FOUR 4.0
#endif

__global__ void mandelbrot(unsigned char *image, int width, int height, float x0, float y0, float dx,
                           float dy, int max_iterations) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = x0 + px * dx;
    float cy = y0 + py * dy;
    float zx = 0, zy = 0;
    int iteration = 0;
    while (zx * zx + zy * zy < FOUR && iteration < max_iterations) {
        float t = zx * zx - zy * zy + cx;
        zy = TWO * zx * zy + cy;
        zx = t;
        iteration++;
    }
    image[py * width + px] = iteration == max_iterations ? 0 : iteration;
}

int main() {
    int width = 2048, height = 2048;
    unsigned char *image;
    cudaMalloc(&image, width * height);
    dim3 threads(16, 16);
    dim3 blocks((width + threads.x - 1) / threads.x, (height + threads.y - 1) / threads.y);
    mandelbrot<<<blocks, threads>>>(image, width, height, -2.0f, -1.25f, 2.5f / width, 2.5f / height, 256);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed\n");
        return 1;
    }
    unsigned char *host = (unsigned char *)malloc(width * height);
    cudaMemcpy(host, image, width * height, cudaMemcpyDeviceToHost);
    FILE *file = fopen("mandelbrot.pgm", "wb");
    fprintf(file, "P5 %d %d 255\n", width, height);
    fwrite(host, 1, width * height, file);
    fclose(file);
}
