// nvcc -arch=sm_80 -lineinfo --compress-mode=size --fatbin -o scale_zstd.fatbin scale.cu
// nvcc -gencode arch=compute_75,code=compute_75 --compress-mode=speed --fatbin -o scale_lz4.fatbin scale.cu
template <int N> __global__ void scale(float *x, float a, int n)
{
    int i = blockIdx.x * N + threadIdx.x;
    if (i < n)
        x[i] *= a;
}
template __global__ void scale<64>(float *, float, int);
