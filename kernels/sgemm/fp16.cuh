// Rung 21: floats in two parts of FP16, and their products on tensor cores.

// The power of two that brings a number to 2^14 to 2^15, and its inverse. What is below 2^-112 counts as that.
// A sum of a phase has up to 2^35: multiplied by an inverse of 2^93 or more (2^107 * 2^-14), it may overflow.
struct Scale {
    unsigned exponent;
    __device__ Scale(float largest) : exponent(max(__float_as_uint(largest) & 0x7f800000, 15u << 23)) {}
    __device__ float factor() const { return __uint_as_float((268u << 23) - exponent); }
    __device__ float inverse() const { return __uint_as_float(exponent - (14u << 23)); }
};

// Split two floats into high parts and what they lack, in pairs of halves.
__device__ void split(float x, float y, unsigned& high, unsigned& low)
{
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
    float high_x, high_y;
    asm("{ .reg .b16 first, second; mov.b32 {first, second}, %2; cvt.f32.f16 %0, first; cvt.f32.f16 %1, second; }"
        : "=f"(high_x), "=f"(high_y) : "r"(high));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y - high_y), "f"(x - high_x));
}

// Four matrices of 8 x 8 halves, one row of one of them per lane.
__device__ void load_matrices(unsigned (&to)[4], const unsigned short* from)
{
    const unsigned address = __cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

// The same, transposed, for two products beside each other.
__device__ void load_transposed(unsigned (&to)[2], unsigned (&beside)[2], const unsigned short* from)
{
    const unsigned address = __cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(beside[0]), "=r"(beside[1]) : "r"(address) : "memory");
}

// sum += a * b, 16 x 8 elements over 16 k
__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
