// Pieces of memory that a thread stores or loads by several accesses, and words that are stored at random places.

// Types of 4, 8 and 16 bytes.
template <int BYTES> struct Of;
template <> struct Of<4> { using Type = unsigned; };
template <> struct Of<8> { using Type = uint2; };
template <> struct Of<16> { using Type = uint4; };
using Type = Of<WIDTH>::Type;

// PARTS stores of WIDTH bytes fill a piece. APART dependent multiply-adds stand before each. GROUP threads have pieces in
// a row; the next GROUP ones are `stride` bytes further, up to `rows` of them, then behind the first ones.
extern "C" __global__ void fill_pieces(char* memory, unsigned pieces, unsigned rows, unsigned long long stride)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < pieces; i += threads) {
        const unsigned group = i / GROUP, row = group % rows, column = group / rows * GROUP + i % GROUP;
        char* at = memory + row * stride + size_t(column) * (PARTS * WIDTH);
        float x = i;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
#pragma unroll
            for (int k = 0; k < APART; ++k) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
            Type value;
#pragma unroll
            for (int k = 0; k < WIDTH / 4; ++k) ((unsigned*)&value)[k] = __float_as_uint(x) + part;
            *(Type*)(at + part * WIDTH) = value;
            asm volatile("" ::: "memory");
        }
    }
}

// PARTS loads of WIDTH bytes read a piece; all are asked for before a value is used.
extern "C" __global__ void read_pieces(unsigned* out, const char* memory, unsigned pieces)
{
    const unsigned threads = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < pieces; i += threads) {
        unsigned words[PARTS][4];
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const char* at = memory + (size_t(i) * PARTS + part) * WIDTH;
            unsigned* w = words[part];
            if (WIDTH == 4) asm volatile("ld.global.u32 %0, [%1];" : "=r"(w[0]) : "l"(at));
            if (WIDTH == 8) asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(at));
            if (WIDTH == 16)
                asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(at));
        }
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
#pragma unroll
            for (int k = 0; k < WIDTH / 4; ++k) sum ^= words[part][k];
    }
    if (sum == 12345) out[0] = sum;  // never true, and the compiler does not know
}

// Every word of `mask` + 1 is stored once, in an order without locality (`step` is odd).
extern "C" __global__ void scatter_words(unsigned* memory, unsigned mask, unsigned step)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= mask; i += threads) {
        unsigned at = i * step & mask;
        at ^= at >> 11, at = at * 0x2c1b3c6d & mask, at ^= at >> 13;
        memory[at] = i;
    }
}

// The same for loads.
extern "C" __global__ void gather_words(unsigned* out, const unsigned* memory, unsigned mask, unsigned step)
{
    const unsigned threads = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= mask; i += threads) {
        unsigned at = i * step & mask;
        at ^= at >> 11, at = at * 0x2c1b3c6d & mask, at ^= at >> 13;
        sum ^= memory[at];
    }
    if (sum == 12345) out[0] = sum;  // never true, and the compiler does not know
}
