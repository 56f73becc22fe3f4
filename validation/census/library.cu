// Kernels of CUB and Thrust: those that the calls instantiate. Nothing here runs.
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/inner_product.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

struct Less {
    template <class T> __host__ __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};
struct IsOdd {
    template <class T> __host__ __device__ bool operator()(const T &a) const { return (long long)a & 1; }
};
struct Twice {
    template <class T> __host__ __device__ T operator()(const T &a) const { return a + a; }
};

template <class T> void reductions(void *room, size_t &bytes, const T *in, T *out, int n, const int *ends) {
    cub::DeviceReduce::Sum(room, bytes, in, out, n);
    cub::DeviceReduce::Max(room, bytes, in, out, n);
    cub::DeviceReduce::ArgMin(room, bytes, in, (cub::KeyValuePair<int, T> *)out, n);
    cub::DeviceSegmentedReduce::Sum(room, bytes, in, out, n, ends, ends + 1);
    cub::DeviceReduce::ReduceByKey(room, bytes, ends, (int *)ends, in, out, (int *)out, cuda::std::plus<>(), n);
}

template <class T> void scans(void *room, size_t &bytes, const T *in, T *out, int n) {
    cub::DeviceScan::InclusiveSum(room, bytes, in, out, n);
    cub::DeviceScan::ExclusiveSum(room, bytes, in, out, n);
    cub::DeviceSelect::If(room, bytes, in, out, (int *)out, n, IsOdd());
    cub::DeviceSelect::Unique(room, bytes, in, out, (int *)out, n);
    cub::DevicePartition::If(room, bytes, in, out, (int *)out, n, IsOdd());
    cub::DeviceRunLengthEncode::Encode(room, bytes, in, out, (int *)out, (int *)out, n);
}

template <class T> void sorts(void *room, size_t &bytes, const T *in, T *out, int n) {
    cub::DeviceRadixSort::SortKeys(room, bytes, in, out, n);
    cub::DeviceRadixSort::SortPairs(room, bytes, in, out, (const int *)in, (int *)out, n);
    cub::DeviceMergeSort::SortKeys(room, bytes, out, n, Less());
}

template <class T> void thrusts(T *in, T *out, int n) {
    thrust::device_ptr<T> a(in), b(out);
    thrust::transform(thrust::device, a, a + n, b, Twice());
    thrust::inclusive_scan(thrust::device, a, a + n, b);
    thrust::sort(thrust::device, a, a + n, Less());
    thrust::unique(thrust::device, a, a + n);
    thrust::inner_product(thrust::device, a, a + n, b, T());
}

void calls(void *room, size_t &bytes, void *in, void *out, int n, const int *ends) {
    reductions(room, bytes, (const int *)in, (int *)out, n, ends);
    reductions(room, bytes, (const float *)in, (float *)out, n, ends);
    reductions(room, bytes, (const double *)in, (double *)out, n, ends);
    scans(room, bytes, (const int *)in, (int *)out, n);
    scans(room, bytes, (const float *)in, (float *)out, n);
    sorts(room, bytes, (const unsigned *)in, (unsigned *)out, n);
    sorts(room, bytes, (const double *)in, (double *)out, n);
    cub::DeviceHistogram::HistogramEven(room, bytes, (const float *)in, (int *)out, 65, 0.0f, 1.0f, n);
    thrusts((float *)in, (float *)out, n);
}
