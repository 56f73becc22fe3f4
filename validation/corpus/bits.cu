// Bits of 32-bit words: counts, reversal, fields, funnel shifts, permutes, logic of predicates.

extern "C" __global__ void bit_counts(int* out, const unsigned* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned x = in[i];
    out[6 * i] = __clz(x);
    out[6 * i + 1] = __ffs(x);
    out[6 * i + 2] = __popc(x);
    out[6 * i + 3] = __brev(x);
    asm("bfind.u32 %0, %1;" : "=r"(out[6 * i + 4]) : "r"(x));
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(out[6 * i + 5]) : "r"(x));
}

extern "C" __global__ void shifts(
    unsigned* out, const unsigned* a, const unsigned* b, const unsigned* k, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned x = a[i], y = b[i], s = k[i];
    unsigned* mine = out + 10 * i;
    mine[0] = __funnelshift_l(x, y, s);
    mine[1] = __funnelshift_r(x, y, s);
    mine[2] = __funnelshift_lc(x, y, s);
    mine[3] = __funnelshift_rc(x, y, s);
    asm("shl.b32 %0, %1, %2;" : "=r"(mine[4]) : "r"(x), "r"(s));
    asm("shr.u32 %0, %1, %2;" : "=r"(mine[5]) : "r"(x), "r"(s));
    asm("shr.s32 %0, %1, %2;" : "=r"(mine[6]) : "r"(x), "r"(s));
    mine[7] = __funnelshift_l(x, y, 9);
    mine[8] = (int)x >> 5;
    mine[9] = __funnelshift_r(x, x, 11);
}

extern "C" __global__ void fields(
    int* out, const int* a, const int* b, const unsigned* start, const unsigned* length, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* mine = out + 6 * i;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(mine[0]) : "r"(a[i]), "r"(start[i]), "r"(length[i]));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(mine[1]) : "r"(a[i]), "r"(start[i]), "r"(length[i]));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(mine[2]) : "r"(a[i]), "r"(b[i]), "r"(start[i]), "r"(length[i]));
    asm("bfe.s32 %0, %1, 5, 11;" : "=r"(mine[3]) : "r"(a[i]));
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(mine[4]) : "r"(start[i]), "r"(length[i]));
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(mine[5]) : "r"(a[i]), "r"(length[i]));
}

extern "C" __global__ void permutes(
    unsigned* out, const unsigned* a, const unsigned* b, const unsigned* selector, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned* mine = out + 5 * i;
    mine[0] = __byte_perm(a[i], b[i], selector[i]);
    mine[1] = __byte_perm(a[i], b[i], 0x1537);
    asm("prmt.b32 %0, %1, %2, 0xb8a9;" : "=r"(mine[2]) : "r"(a[i]), "r"(b[i]));
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(mine[3]) : "r"(a[i]), "r"(b[i]), "r"(selector[i]));
    asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(mine[4]) : "r"(a[i]), "r"(b[i]), "r"(selector[i]));
}

extern "C" __global__ void predicate_logic(int* out, const int* a, const int* b, const int* c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const bool p = a[i] < b[i], q = b[i]<c[i], r = (unsigned)a[i]>(unsigned) c[i];
    int value = 0;
    if ((p && !q) || r) value |= 1;
    if (p ^ q ^ r) value |= 2;
    if ((p || q) && !(p && r)) value |= 4;
    if (p == (q != r)) value |= 8;
    out[i] = value + (p ? a[i] : c[i]);
}

extern "C" __global__ void extremes(int* out, const int* a, const int* b, const int* c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int x = a[i], y = b[i], z = c[i];
    const unsigned u = x, v = y, w = z;
    int* mine = out + 10 * i;
    mine[0] = min(x, y);
    mine[1] = max(x, y);
    mine[2] = min(u, v);
    mine[3] = max(u, v);
    mine[4] = abs(x);
    mine[5] = max(max(x, y), z);
    mine[6] = min(min(u, v), w);
    mine[7] = max(x + y, z);
    mine[8] = max(min(x, y), 0);
    mine[9] = min(max(x, -100), 100);
}

extern "C" __global__ void dot_products(int* out, const int* a, const int* b, const int* c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* mine = out + 8 * i;
    mine[0] = __dp4a(a[i], b[i], c[i]);
    mine[1] = __dp4a((unsigned)a[i], (unsigned)b[i], (unsigned)c[i]);
    mine[2] = __dp2a_lo(a[i], b[i], c[i]);
    mine[3] = __dp2a_hi((unsigned)a[i], (unsigned)b[i], (unsigned)c[i]);
    mine[4] = __sad(a[i], b[i], c[i]);
    mine[5] = __usad(a[i], b[i], c[i]);
    mine[6] = __hadd(a[i], b[i]);
    mine[7] = __urhadd(a[i], b[i]);
}

extern "C" __global__ void packed_bytes(unsigned* out, const unsigned* a, const unsigned* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned* mine = out + 8 * i;
    mine[0] = __vadd4(a[i], b[i]);
    mine[1] = __vsub4(a[i], b[i]);
    mine[2] = __vmaxs4(a[i], b[i]);
    mine[3] = __vminu2(a[i], b[i]);
    mine[4] = __vcmpgts4(a[i], b[i]);
    mine[5] = __vabsdiffu4(a[i], b[i]);
    mine[6] = __vadd2(a[i], b[i]);
    mine[7] = __vavgu4(a[i], b[i]);
}
