// C functions around GEMMul8's SGEMM on INT8 tensor cores, for benchmarks/split_products.py. With GEMMul8's sources
// beside this tree (github.com/RIKEN-RCCS/GEMMul8):
//
//     nvcc -std=c++20 -O3 -arch=sm_90 -shared -Xcompiler -fPIC -I GEMMul8/include benchmarks/kernels/gemmul8.cu \
//         GEMMul8/src/gemmul8.cu -lcublas -lcublasLt -o gemmul8.so

#include <gemmul8.hpp>

static cublasHandle_t handle;

extern "C" int gemmul8_open() { return cublasCreate(&handle); }

extern "C" size_t gemmul8_workspace_bytes(size_t m, size_t n, size_t k, unsigned moduli)
{
    return gemmul8::workSize<false, gemmul8::Backend::INT8>(m, n, k, moduli);
}

// C = A * B, row by row: GEMMul8 takes them as their transposes, column by column.
extern "C" void gemmul8_multiply(size_t m, size_t n, size_t k, const float *a, const float *b, float *c,
                                 unsigned moduli, int fast, void *workspace)
{
    const float one = 1, zero = 0;
    gemmul8::gemm<float>(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n, moduli, fast != 0,
                         workspace);
}
