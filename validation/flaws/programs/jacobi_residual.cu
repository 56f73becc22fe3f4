// One Jacobi step of the Poisson equation with a tile and halo in shared memory, and its residual.
// The flaw: each thread adds its part of the residual to global memory.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        cudaError_t status = (call);                                                     \
        if (status != cudaSuccess) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

constexpr int BX = 32;
constexpr int BY = 8;

__global__ void jacobi_residual(const float *__restrict__ u, const float *__restrict__ f,
                                float *__restrict__ next, float *residual, int nx, int ny, float h2) {
    __shared__ float tile[BY + 2][BX + 2];
    const int x = blockIdx.x * BX + threadIdx.x + 1;
    const int y = blockIdx.y * BY + threadIdx.y + 1;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    const int pitch = nx + 2;

    tile[ty][tx] = u[y * pitch + x];
    if (threadIdx.x == 0) tile[ty][0] = u[y * pitch + x - 1];
    if (threadIdx.x == BX - 1) tile[ty][BX + 1] = u[y * pitch + x + 1];
    if (threadIdx.y == 0) tile[0][tx] = u[(y - 1) * pitch + x];
    if (threadIdx.y == BY - 1) tile[BY + 1][tx] = u[(y + 1) * pitch + x];
    __syncthreads();

    const float updated = 0.25f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] +
                                   tile[ty + 1][tx] - h2 * f[y * pitch + x]);
    next[y * pitch + x] = updated;
    float difference = fabsf(updated - tile[ty][tx]);
#if FIXED
    __shared__ float parts[BY];
    for (int offset = 16; offset > 0; offset /= 2)
        difference += __shfl_down_sync(0xffffffff, difference, offset);
    if (threadIdx.x == 0) parts[threadIdx.y] = difference;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        for (int k = 1; k < BY; k++) difference += parts[k];
        atomicAdd(residual, difference);
    }
#else
    atomicAdd(residual, difference);
#endif
}

int main() {
    const int nx = 2048, ny = 2048;
    const size_t bytes = (size_t)(nx + 2) * (ny + 2) * sizeof(float);
    float *u, *f, *next, *residual;
    CHECK(cudaMalloc(&u, bytes));
    CHECK(cudaMalloc(&f, bytes));
    CHECK(cudaMalloc(&next, bytes));
    CHECK(cudaMalloc(&residual, sizeof(float)));
    std::vector<float> host((nx + 2) * (ny + 2));
    for (size_t k = 0; k < host.size(); k++) host[k] = rand() / (float)RAND_MAX;
    CHECK(cudaMemcpy(u, host.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(f, host.data(), bytes, cudaMemcpyHostToDevice));
    dim3 block(BX, BY), grid(nx / BX, ny / BY);
    for (int step = 0; step < 100; step++) {
        CHECK(cudaMemset(residual, 0, sizeof(float)));
        jacobi_residual<<<grid, block>>>(u, f, next, residual, nx, ny, 1.0f / (nx * nx));
        CHECK(cudaGetLastError());
        std::swap(u, next);
    }
    float error;
    CHECK(cudaMemcpy(&error, residual, sizeof(float), cudaMemcpyDeviceToHost));
    printf("residual %g\n", error);
    return 0;
}
