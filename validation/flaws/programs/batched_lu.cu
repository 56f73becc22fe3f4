// LU factorization with partial pivoting of many 8 x 8 matrices, one per thread, interleaved.
// The flaw: rows are exchanged by an index that is known at run time only, so that the matrix is in
// local memory.
template <typename T, int N>
__global__ void lu_batched(const T *matrices, T *factors, int *pivots, int batch) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= batch) return;

    T a[N][N];
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int j = 0; j < N; j++) a[i][j] = matrices[(i * N + j) * batch + id];

#pragma unroll
    for (int k = 0; k < N; k++) {
        int pivot = k;
        T largest = fabs(a[k][k]);
#pragma unroll
        for (int i = k + 1; i < N; i++)
            if (fabs(a[i][k]) > largest) {
                largest = fabs(a[i][k]);
                pivot = i;
            }
        pivots[k * batch + id] = pivot;
#if FIXED
#pragma unroll
        for (int i = k + 1; i < N; i++)
#pragma unroll
            for (int j = 0; j < N; j++) {
                T upper = a[k][j], lower = a[i][j];
                a[k][j] = i == pivot ? lower : upper;
                a[i][j] = i == pivot ? upper : lower;
            }
#else
        if (pivot != k)
            for (int j = 0; j < N; j++) {
                T t = a[k][j];
                a[k][j] = a[pivot][j];
                a[pivot][j] = t;
            }
#endif
        T inverse = T(1) / a[k][k];
#pragma unroll
        for (int i = k + 1; i < N; i++) {
            T factor = a[i][k] * inverse;
            a[i][k] = factor;
#pragma unroll
            for (int j = k + 1; j < N; j++) a[i][j] -= factor * a[k][j];
        }
    }

#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int j = 0; j < N; j++) factors[(i * N + j) * batch + id] = a[i][j];
}

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

int main() {
    const int batch = 1 << 18;
    thrust::host_vector<float> host(64 * batch);
    for (auto &value : host) value = rand() % 1000 / 1000.0f;
    thrust::device_vector<float> matrices = host, factors(host.size());
    thrust::device_vector<int> pivots(8 * batch);
    lu_batched<float, 8><<<batch / 128, 128>>>(thrust::raw_pointer_cast(matrices.data()),
                                               thrust::raw_pointer_cast(factors.data()),
                                               thrust::raw_pointer_cast(pivots.data()), batch);
    cudaDeviceSynchronize();
}
