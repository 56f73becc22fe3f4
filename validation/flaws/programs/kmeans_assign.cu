// Assignment step of k-means: the nearest of 16 centroids for each point of 16 dimensions.
// The flaw: a thread reads the whole row of its point, so that lanes are 64 bytes apart.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define DIM 16
#define K 16

__global__ void assign_clusters(const float *points, const float *centroids, int *labels, int n) {
    __shared__ float c[K * DIM];
    for (int i = threadIdx.x; i < K * DIM; i += blockDim.x) c[i] = centroids[i];
    __syncthreads();

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    float distance[K];
    for (int k = 0; k < K; k++) distance[k] = 0.0f;
    for (int d = 0; d < DIM; d++) {
#if FIXED
        float p = points[d * n + i];
#else
        float p = points[i * DIM + d];
#endif
        for (int k = 0; k < K; k++) {
            float t = p - c[k * DIM + d];
            distance[k] += t * t;
        }
    }
    int best = 0;
    float least = distance[0];
    for (int k = 1; k < K; k++)
        if (distance[k] < least) {
            least = distance[k];
            best = k;
        }
    labels[i] = best;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 2000000;
    float *d_points, *d_centroids;
    int *d_labels;
    cudaMalloc((void **)&d_points, n * DIM * sizeof(float));
    cudaMalloc((void **)&d_centroids, K * DIM * sizeof(float));
    cudaMalloc((void **)&d_labels, n * sizeof(int));

    float *points = (float *)malloc(n * DIM * sizeof(float));
    for (int i = 0; i < n * DIM; i++) points[i] = (float)rand() / RAND_MAX;
    cudaMemcpy(d_points, points, n * DIM * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_centroids, points, K * DIM * sizeof(float), cudaMemcpyHostToDevice);

    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaEventRecord(start);
    assign_clusters<<<blocks, threads>>>(d_points, d_centroids, d_labels, n);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms;
    cudaEventElapsedTime(&ms, start, stop);
    printf("%d points: %.3f ms\n", n, ms);
    free(points);
    return 0;
}
