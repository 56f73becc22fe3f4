// Accesses of 8, 16, 32, 64 and 128 bits, signed and unsigned, aligned and not to sectors.

extern "C" __global__ void bytes(
    signed char* s, unsigned char* u, const signed char* a, const unsigned char* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    s[i] = (a[i] + 3 * b[i]) >> 1;
    u[i] = b[i] > 100 ? a[i] : b[i] + 1;
}

extern "C" __global__ void shorts(short* s, unsigned short* u, const short* a, const unsigned short* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    s[i] = a[i] * b[i];
    u[i] = (a[i] < 0 ? -a[i] : a[i]) + (b[i] >> 3);
}

// Packed in shared memory, then summed with other neighbours.
extern "C" __global__ void bytes_in_shared(int* out, const unsigned char* in)
{
    __shared__ unsigned char u[256];
    __shared__ signed char s[256];
    __shared__ short h[256];
    __shared__ unsigned short v[256];
    const int t = threadIdx.x;
    u[t] = in[t], s[255 - t] = in[t], h[t] = in[t] * -97, v[t ^ 1] = in[t] * 255;
    __syncthreads();
    out[t] = u[(t + 1) % 256] + s[t] * 3 + h[(t * 5) % 256] - v[t];
}

extern "C" __global__ void pixels_to_grey(unsigned char* out, const uchar4* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uchar4 p = in[i];
    out[i] = (77 * p.x + 150 * p.y + 29 * p.z + 128) >> 8;
}

// `shift` floats off the start of a line; vectors stay aligned to 16 bytes.
extern "C" __global__ void copy_float4(float4* out, const float4* in, int n, int shift)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i + shift] = in[i + shift];
}

extern "C" __global__ void copy_strided(float* out, const float* in, int n, int stride)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * stride];
}

struct Particle {
    float x, y, z;
    float mass;
    double energy;
    short kind;
    unsigned char flags[3];
};

// Array of structures: 32 bytes apart, fields of four sizes.
extern "C" __global__ void particles(Particle* p, float dt, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle q = p[i];
    p[i].x = q.x + dt * q.mass;
    p[i].energy = q.energy * 2 + q.kind;
    p[i].flags[1] = q.flags[0] ^ q.flags[2];
    if (q.kind < 0) p[i].kind = -q.kind;
}
