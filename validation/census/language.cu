// Constructs of the language: calls, tables, local memory, scopes, and what the hardware counts.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/complex>
namespace cg = cooperative_groups;
typedef unsigned u32;
#define I (blockIdx.x * blockDim.x + threadIdx.x)

struct Shape { __device__ virtual float area(float x) const = 0; };
struct Square : Shape { __device__ float area(float x) const override { return x * x; } };
struct Circle : Shape { __device__ float area(float x) const override { return 3.14159f * x * x; } };

__global__ void virtual_calls(float *r, const int *which) {
    Square square; Circle circle;
    const Shape *shape = which[I] & 1 ? (const Shape *)&square : &circle;
    r[I] = shape->area(r[I]);
}

__device__ float add(float a, float b) { return a + b; }
__device__ float sub(float a, float b) { return a - b; }
__device__ float mul(float a, float b) { return a * b; }
__global__ void function_pointers(float *r, const int *which) {
    float (*const table[])(float, float) = {add, sub, mul};
    r[I] = table[which[I] % 3](r[I], r[I + 1]);
}

__device__ __noinline__ int depth(int n, int *seen) { return n < 2 ? n : depth(n - 1, seen) + depth(n - 2, seen) + seen[n]; }
__global__ void recursion(int *r, int *seen) { r[I] = depth(r[I], seen); }

__global__ void switch_table(int *r, const int *x) {
    int y = x[I + 1];
    switch (x[I]) {
    case 0: y += 5; break; case 1: y *= 7; break; case 2: y ^= 11; break; case 3: y = __popc(y); break;
    case 4: y = __brev(y); break; case 5: y = y / 3; break; case 6: y = -y; break; case 7: y <<= 3; break;
    case 8: y = __clz(y); break; case 9: y >>= 2; break; case 10: y |= 77; break; case 11: y &= 99; break;
    }
    r[I] = y;
}

__global__ void local_array(int *r, const int *x) {
    int a[64];
    for (int k = 0; k < 64; k++) a[k] = x[k] + r[k];
    for (int k = 0; k < 64; k++) a[x[k] & 63] += a[r[k] & 63];
    r[I] = a[x[I] & 63];
}

__global__ void volatile_memory(volatile int *r) { __shared__ volatile int s[64]; s[threadIdx.x] = r[I]; r[I] = s[63 - threadIdx.x] + r[I]; }
__global__ void clocks(long long *r) { long long a = clock64(); __nanosleep(100); r[I] = clock64() - a + clock(); }
__global__ void cached(int *r, const int *x) { __stcg(r + I, __ldcg(x + I) + __ldca(x + I) + __ldcs(x + I) + __ldlu(x + I) + __ldcv(x + I) + __ldg(x + I)); __stcs(r, 1); __stwt(r + 1, 2); __stwb(r + 2, 3); }
__global__ void fences(int *r) { r[I] = 1; __threadfence(); r[I + 1] = 2; __threadfence_block(); r[I + 2] = 3; __threadfence_system(); r[I + 3] = 4; }
__global__ void complex_numbers(cuda::std::complex<float> *r) { r[I] = r[I] * r[I + 1] / r[I + 2]; }
__global__ void complex_doubles(cuda::std::complex<double> *r) { r[I] = exp(r[I]) * sqrt(r[I + 1]); }

template <class T, cuda::thread_scope S> __device__ void scoped(T *r) {
    cuda::atomic_ref<T, S> a(r[I]);
    a.fetch_add(1, cuda::memory_order_relaxed); a.store(2, cuda::memory_order_release);
    r[I + 1] = a.load(cuda::memory_order_acquire) + a.exchange(3, cuda::memory_order_acq_rel);
    T expected = 3; a.compare_exchange_strong(expected, 5); a.fetch_max(7);
}
__global__ void atomic_ref_block(int *r) { scoped<int, cuda::thread_scope_block>(r); }
__global__ void atomic_ref_device(unsigned long long *r) { scoped<unsigned long long, cuda::thread_scope_device>(r); }
__global__ void atomic_ref_system(u32 *r) { scoped<u32, cuda::thread_scope_system>(r); }
template <class T> __device__ void adds(T *r, T x) { __shared__ T s[32]; s[threadIdx.x % 32] = x; __syncthreads(); atomicAdd(r, x); atomicAdd(s, x); atomicAdd_block(r + 1, x); atomicAdd_system(r + 2, x); r[I] = s[threadIdx.x % 32] + atomicAdd(r + 3, x); }
__global__ void atomic_float(float *r) { adds(r, 1.5f); }
__global__ void atomic_double(double *r) { adds(r, 1.5); }
__global__ void atomic_int(int *r) { adds(r, 3); }
__global__ void atomic_long(unsigned long long *r) { adds(r, 3ull); }
__global__ void atomic_others(int *r, int x) { __shared__ int s[4]; int t = atomicSub(r, x) + atomicMin(r, x) + atomicMax(r, x) + atomicAnd(r, x) + atomicOr(r, x) + atomicXor(r, x) + atomicExch(r, x) + atomicCAS(r, x, 3) + atomicInc((u32 *)r, x) + atomicDec((u32 *)r, x); t += atomicMin(s, x) + atomicCAS(s + 1, x, 4) + atomicExch(s + 2, x) + atomicInc((u32 *)s, 5); r[I] = t; }
__global__ void atomic_short(unsigned short *r) { r[I] = atomicCAS(r, (unsigned short)1, (unsigned short)2); }

__global__ void groups(int *r) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block); auto four = cg::tiled_partition<4>(warp);
    auto active = cg::coalesced_threads();
    int x = warp.shfl_down(r[I], 3) + four.shfl_xor(r[I], 1) + active.shfl(r[I], 0) + warp.any(r[I]) + warp.ballot(r[I]) + active.size();
    x += warp.match_any(r[I]); block.sync(); four.sync();
    if (r[I] > 3) { auto few = cg::coalesced_threads(); x += few.thread_rank() + few.shfl_up(x, 1); few.sync(); }
    r[I] = x;
}
__global__ void whole_grid(int *r) { auto grid = cg::this_grid(); r[I] = 1; grid.sync(); r[I] += r[0] + grid.thread_rank(); }
#if __CUDA_ARCH__ >= 800
#include <cooperative_groups/reduce.h>
__global__ void group_reduce(int *r) { auto warp = cg::tiled_partition<32>(cg::this_thread_block()); r[I] = cg::reduce(warp, r[I], cg::plus<int>()) + cg::reduce(warp, r[I], cg::greater<int>()); }
__global__ void barrier_object(int *r) { __shared__ cuda::barrier<cuda::thread_scope_block> b; if (!threadIdx.x) init(&b, blockDim.x); __syncthreads(); auto t = b.arrive(); r[I] = 1; b.wait(static_cast<decltype(t) &&>(t)); r[I] += r[0]; }
#endif
#if __CUDA_ARCH__ >= 900
__global__ void cluster_memory(int *r) { __shared__ int s[64]; auto cluster = cg::this_cluster(); s[threadIdx.x] = r[I]; cluster.sync(); int *other = cluster.map_shared_rank(s, 1 - cluster.block_rank()); atomicAdd(other, 3); r[I] = other[63 - threadIdx.x]; cluster.sync(); }
#endif
__global__ void alloca_array(int *r, int n) { int *a = (int *)alloca(n * 4); for (int k = 0; k < n; k++) a[k] = r[k]; r[I] = a[r[I] % n]; }
__global__ void __launch_bounds__(1024, 2) spills(float *r) { float a[40]; for (int k = 0; k < 40; k++) a[k] = r[k * 1024 + I]; for (int j = 0; j < 9; j++) for (int k = 0; k < 40; k++) a[k] = a[k] * a[39 - k] + r[j]; for (int k = 0; k < 40; k++) r[k * 1024 + I] = a[k]; }

__global__ void scaled_products(float *r, const float *a, const float *b) {
    r[0] = a[0] * b[0] * 0.5f; r[1] = a[1] * b[1] * 0.25f; r[2] = a[2] * b[2] * 0.125f;
    r[3] = a[3] * b[3] * 4.0f; r[4] = a[4] * b[4] * 8.0f;
}
