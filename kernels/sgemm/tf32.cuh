// Rung 20: floats in two parts of TF32, and their products on tensor cores.

// Split a float into the nearest number of 11 bits and what is left of it, rounded to 11 bits: tensor
// cores ignore the other 13. Half of the last bit is added first, so that they round. The sum wraps from
// NaN from 0x7ffff000 on to -0, and is Inf from 0x7f7ff000 on; Inf leaves NaN, which wraps to -0 too.
__device__ void split(float x, unsigned& big, unsigned& small)
{
    big = __float_as_uint(x) + 0x1000 & 0xffffe000;
    small = __float_as_uint(x - __uint_as_float(big)) + 0x1000;
}

// Four matrices of 8 x 4 floats, one row of one of them per lane.
__device__ void load_matrices(unsigned (&to)[4], const float* from)
{
    const unsigned address = __cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

// sum += a * b, 16 x 8 elements over 8 k
__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
