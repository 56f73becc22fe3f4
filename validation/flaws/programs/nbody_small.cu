// Gravity of 8,192 bodies, with tiles of bodies in shared memory.
// The flaw: blocks of 256 threads are 32 blocks, and the GPU has many more SMs.
#include <vector>

#ifdef FIXED
#define BLOCK (FIXED ? 64 : 256)
#else
#define BLOCK 256
#endif
#define SOFTENING 1e-9f

struct Body {
    float x, y, z, vx, vy, vz;
};

__global__ void body_force(const float4 *p, float4 *v, float dt, int n) {
    __shared__ float3 shared_position[BLOCK];
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    float4 own = p[i];
    for (int tile = 0; tile < gridDim.x; tile++) {
        float4 other = p[tile * blockDim.x + threadIdx.x];
        shared_position[threadIdx.x] = make_float3(other.x, other.y, other.z);
        __syncthreads();
#pragma unroll 16
        for (int j = 0; j < BLOCK; j++) {
            float dx = shared_position[j].x - own.x;
            float dy = shared_position[j].y - own.y;
            float dz = shared_position[j].z - own.z;
            float distance2 = dx * dx + dy * dy + dz * dz + SOFTENING;
            float inverse = rsqrtf(distance2);
            float inverse3 = inverse * inverse * inverse;
            fx += dx * inverse3;
            fy += dy * inverse3;
            fz += dz * inverse3;
        }
        __syncthreads();
    }
    v[i].x += dt * fx;
    v[i].y += dt * fy;
    v[i].z += dt * fz;
}

int main(int argc, const char **argv) {
    int bodies = 8192;
    if (argc > 1) bodies = atoi(argv[1]);
    const float dt = 0.01f;
    float4 *position, *velocity;
    cudaMallocManaged(&position, bodies * sizeof(float4));
    cudaMallocManaged(&velocity, bodies * sizeof(float4));
    for (int i = 0; i < bodies; i++) {
        position[i] = make_float4(drand48(), drand48(), drand48(), 1.0f);
        velocity[i] = make_float4(0, 0, 0, 0);
    }
    int blocks = (bodies + BLOCK - 1) / BLOCK;
    for (int step = 0; step < 10; step++) body_force<<<blocks, BLOCK>>>(position, velocity, dt, bodies);
    cudaDeviceSynchronize();
    cudaFree(position);
    cudaFree(velocity);
}
