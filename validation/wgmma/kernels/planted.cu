// Kernels of wgmma with one mistake each, and correct ones of the same kinds ("clean"). Each takes 4 tiles of
// A (64 rows) and B (8 rows of B^T), 64 k deep, and adds their products to C (64 x 8).
//
// A comment before each kernel says what is wrong, what a check must find, and where code is patched: ptxas repairs
// some mistakes, so that only machine code has them. Lines with `// <-` are those that a finding names.
struct alignas(64) TensorMap { char opaque[128]; };

#define ARGUMENTS                                                                                         \
    const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, const uint4 *a, const uint4 *b, \
        float *c, int tiles
#define T threadIdx.x
#define KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name(ARGUMENTS)
#define SHARED(x) ((unsigned)__cvta_generic_to_shared(x))
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(left) asm volatile("wgmma.wait_group.sync.aligned " #left ";" ::: "memory")
#define PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define ONE(x, da, db)                                                                                                 \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"          \
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) : "l"(da), "l"(db))
#define OF_REGISTERS(x, y, db)                                                                                              \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"    \
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "l"(db))
#define MULTIPLY(x, da, db) ONE(x, da, db); ONE(x, da + 2, db + 2); ONE(x, da + 4, db + 4); ONE(x, da + 6, db + 6)
#define PUT(at, from, k, rows) /* rows of 128 bytes, pieces swizzled by the row */               \
    for (int i = T; i < rows * 8; i += blockDim.x)                                                          \
        at[i / 8 * 8 + (i % 8 ^ i / 8 % 8)] = from[i / 8 * 32 + (k) * 8 + i % 8]
#define BOTH(to, tb, k) PUT(to, a, k, 64); PUT(tb, b, k, 8)
#define BEGIN(barrier, count) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SHARED(barrier)), "r"(count) : "memory")
#define ARRIVE(barrier) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SHARED(barrier)) : "memory")
#define EXPECT(barrier, n) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED(barrier)), "r"(n) : "memory")
#define AWAIT(barrier, parity) \
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L;}" ::"r"(SHARED(barrier)), "r"(parity) : "memory")
#define COPY(to, map, k, barrier)                                                                                             \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(SHARED(to)), \
                 "l"(&map), "r"((k) * 64), "r"(0), "r"(SHARED(barrier)) : "memory")
#define COPIES(to, tb, k, barrier) EXPECT(barrier, 9216); COPY(to, A, k, barrier); COPY(tb, B, k, barrier)
#define STORE(x) \
    for (int i = 0; i < 4; i++) c[(T / 32 * 16 + T % 32 / 4 + i / 2 * 8) * 8 + T % 4 * 2 + i % 2] = x[i]
#define DESCRIPTOR(at, stride, layout) ((unsigned long long)((SHARED(at) & 0x3ffff) >> 4) | 1ull << 16 | (stride##ull >> 4) << 32 | layout##ull << 62)
#define D(at) DESCRIPTOR(at, 1024, 1)
#define TILES(n) __shared__ __align__(1024) uint4 sa[n][512]; __shared__ __align__(1024) uint4 sb[n][64]; float x[4] = {}
#define BARRIERS(n) __shared__ __align__(8) unsigned long long full[n], empty[n]

// Clean
KERNEL(clean_stores, 128) {
    TILES(1);
    for (int k = 0; k < tiles; k++) {
        BOTH(sa[0], sb[0], k);
        PROXY();
        __syncthreads();
        FENCE();
        MULTIPLY(x, D(sa[0]), D(sb[0]));
        COMMIT();
        WAIT(0);
        __syncthreads();
    }
    STORE(x);
}

// Bug wgmma still reads the tile when the next one is stored
// Expected racecheck WAR
KERNEL(overwrites_without_wait, 128) {
    TILES(1);
    for (int k = 0; k < tiles; k++) {
        BOTH(sa[0], sb[0], k);  // <-
        PROXY();
        __syncthreads();
        FENCE();
        MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
        COMMIT();
        __syncthreads();
    }
    WAIT(0);
    STORE(x);
}

// Bug one group may be left, and it is the one that reads the tile
// Expected racecheck WAR
KERNEL(waits_for_the_group_before, 128) {
    TILES(1);
    for (int k = 0; k < tiles; k++) {
        BOTH(sa[0], sb[0], k);  // <-
        PROXY();
        __syncthreads();
        FENCE();
        ONE(x, D(sa[0]), D(sb[0]));
        ONE(x, D(sa[0]) + 2, D(sb[0]) + 2);
        COMMIT();
        ONE(x, D(sa[0]) + 4, D(sb[0]) + 4);  // <-
        ONE(x, D(sa[0]) + 6, D(sb[0]) + 6);  // <-
        COMMIT();
        WAIT(1);
        __syncthreads();
    }
    WAIT(0);
    STORE(x);
}

// Bug the other warpgroup stores the next tile when this one has begun to multiply
// Expected racecheck WAR
KERNEL(other_warpgroup_overwrites, 256) {
    TILES(1);
    if (T >= 128) {
        for (int k = 0; k < tiles; k++) {
            if (k) asm volatile("bar.sync 2, 256;" ::: "memory");
            for (int i = T - 128; i < 512; i += 128) sa[0][i / 8 * 8 + (i % 8 ^ i / 8 % 8)] = a[i / 8 * 32 + k * 8 + i % 8];  // <-
            if (T < 192) sb[0][(T - 128) / 8 * 8 + (T % 8 ^ (T - 128) / 8)] = b[(T - 128) / 8 * 32 + k * 8 + T % 8];  // <-
            PROXY();
            asm volatile("bar.arrive 1, 256;" ::: "memory");
        }
        return;
    }
    for (int k = 0; k < tiles; k++) {
        asm volatile("bar.sync 1, 256;" ::: "memory");
        FENCE();
        MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
        COMMIT();
        if (k + 1 < tiles) asm volatile("bar.arrive 2, 256;" ::: "memory");
        WAIT(0);
    }
    STORE(x);
}

// Clean
KERNEL(clean_copies, 128) {
    TILES(2);
    BARRIERS(2);
    if (T == 0) { BEGIN(&full[0], 1); BEGIN(&full[1], 1); }
    __syncthreads();
    if (T == 0) { COPIES(sa[0], sb[0], 0, &full[0]); }
    for (int k = 0; k < tiles; k++) {
        AWAIT(&full[k % 2], k / 2 % 2);
        if (T == 0 && k + 1 < tiles) { COPIES(sa[(k + 1) % 2], sb[(k + 1) % 2], k + 1, &full[(k + 1) % 2]); }
        FENCE();
        MULTIPLY(x, D(sa[k % 2]), D(sb[k % 2]));
        COMMIT();
        WAIT(0);
        __syncthreads();
    }
    STORE(x);
}

// Bug the next tile is copied over the one that wgmma reads
// Expected racecheck WAR
KERNEL(copies_over_a_tile_in_use, 128) {
    TILES(1);
    BARRIERS(1);
    if (T == 0) BEGIN(&full[0], 1);
    __syncthreads();
    if (T == 0) { COPIES(sa[0], sb[0], 0, &full[0]); }
    for (int k = 0; k < tiles; k++) {
        AWAIT(&full[0], k % 2);
        FENCE();
        MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
        COMMIT();
        __syncthreads();
        if (T == 0 && k + 1 < tiles) { COPIES(sa[0], sb[0], k + 1, &full[0]); }  // <-
    }
    WAIT(0);
    STORE(x);
}

// Clean
KERNEL(clean_producer, 256) {
    TILES(2);
    BARRIERS(2);
    if (T == 0)
        for (int i = 0; i < 2; i++) { BEGIN(&full[i], 1); BEGIN(&empty[i], 1); }
    __syncthreads();
    if (T >= 128) {
        for (int k = 0; T == 128 && k < tiles; k++) {
            AWAIT(&empty[k % 2], k / 2 % 2 ^ 1);
            COPIES(sa[k % 2], sb[k % 2], k, &full[k % 2]);
        }
        return;
    }
    for (int k = 0; k < tiles; k++) {
        AWAIT(&full[k % 2], k / 2 % 2);
        FENCE();
        MULTIPLY(x, D(sa[k % 2]), D(sb[k % 2]));
        COMMIT();
        WAIT(0);
        if (T == 0) ARRIVE(&empty[k % 2]);
    }
    STORE(x);
}

// Bug the consumer says that a stage is free before it waits for wgmma
// Expected racecheck WAR
KERNEL(releases_before_it_waits, 256) {
    TILES(2);
    BARRIERS(2);
    if (T == 0)
        for (int i = 0; i < 2; i++) { BEGIN(&full[i], 1); BEGIN(&empty[i], 1); }
    __syncthreads();
    if (T >= 128) {
        for (int k = 0; T == 128 && k < tiles; k++) {
            AWAIT(&empty[k % 2], k / 2 % 2 ^ 1);
            COPIES(sa[k % 2], sb[k % 2], k, &full[k % 2]);  // <-
        }
        return;
    }
    for (int k = 0; k < tiles; k++) {
        AWAIT(&full[k % 2], k / 2 % 2);
        FENCE();
        MULTIPLY(x, D(sa[k % 2]), D(sb[k % 2]));  // <-
        COMMIT();
        if (T == 0) ARRIVE(&empty[k % 2]);
        WAIT(0);
    }
    STORE(x);
}

// Bug with one group in flight the stage of that group is free, not the one before
// Expected racecheck WAR
KERNEL(releases_the_stage_in_flight, 256) {
    TILES(2);
    BARRIERS(2);
    if (T == 0)
        for (int i = 0; i < 2; i++) { BEGIN(&full[i], 1); BEGIN(&empty[i], 1); }
    __syncthreads();
    if (T >= 128) {
        for (int k = 0; T == 128 && k < tiles; k++) {
            AWAIT(&empty[k % 2], k / 2 % 2 ^ 1);
            COPIES(sa[k % 2], sb[k % 2], k, &full[k % 2]);  // <-
        }
        return;
    }
    for (int k = 0; k < tiles; k++) {
        AWAIT(&full[k % 2], k / 2 % 2);
        FENCE();
        MULTIPLY(x, D(sa[k % 2]), D(sb[k % 2]));  // <-
        COMMIT();
        WAIT(1);
        if (T == 0) ARRIVE(&empty[k % 2]);
    }
    WAIT(0);
    STORE(x);
}

// Bug stores are not fenced from wgmma
// Expected racecheck missing proxy fence
KERNEL(no_proxy_fence, 128) {
    TILES(1);
    BOTH(sa[0], sb[0], 0);  // <-
    __syncthreads();
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug one thread fences its own stores alone
// Expected racecheck missing proxy fence
KERNEL(proxy_fence_of_one_thread, 128) {
    TILES(1);
    BOTH(sa[0], sb[0], 0);  // <-
    if (T == 0) PROXY();
    __syncthreads();
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug the fence is before the stores
// Expected racecheck missing proxy fence
KERNEL(proxy_fence_before_stores, 128) {
    TILES(1);
    PROXY();
    BOTH(sa[0], sb[0], 0);  // <-
    __syncthreads();
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Clean the warps that multiply fence what others stored
KERNEL(clean_fence_of_readers, 256) {
    TILES(1);
    BOTH(sa[0], sb[0], 0);
    __syncthreads();
    if (T >= 128) return;
    PROXY();
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug a warp multiplies what other warps may not have stored yet
// Expected racecheck RAW
KERNEL(no_barrier_after_stores, 128) {
    TILES(1);
    BOTH(sa[0], sb[0], 0);  // <-
    PROXY();
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug nobody waits for the copy
// Expected racecheck RAW
KERNEL(no_wait_for_the_copy, 128) {
    TILES(1);
    BARRIERS(1);
    if (T == 0) BEGIN(&full[0], 1);
    __syncthreads();
    if (T == 0) { COPIES(sa[0], sb[0], 0, &full[0]); }  // <-
    __syncthreads();
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug the wait is for the phase before, which is always over
// Expected racecheck RAW
KERNEL(wait_of_the_other_parity, 128) {
    TILES(1);
    BARRIERS(1);
    if (T == 0) BEGIN(&full[0], 1);
    __syncthreads();
    if (T == 0) { COPIES(sa[0], sb[0], 0, &full[0]); }  // <-
    AWAIT(&full[0], 1);
    FENCE();
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

#define COPIED(da, db)                                     \
    TILES(2);                                              \
    BARRIERS(1);                                           \
    if (T == 0) BEGIN(&full[0], 1);                        \
    __syncthreads();                                       \
    if (T == 0) { COPIES(sa[0], sb[0], 0, &full[0]); }     \
    AWAIT(&full[0], 0);                                    \
    FENCE();                                               \
    MULTIPLY(x, (da), (db));                               \
    COMMIT();                                              \
    WAIT(0);                                               \
    STORE(x);

// Bug the stride of a descriptor is in bytes, not in units of 16
// Expected memcheck out of bounds
KERNEL(stride_in_bytes, 128) {
    COPIED(DESCRIPTOR(sa[0], 16384, 1), D(sb[0]))  // <-
}

// Bug the address in a descriptor is in bytes, not in units of 16
// Expected memcheck out of bounds
KERNEL(address_in_bytes, 128) {
    COPIED((D(sa[1]) & ~0x3fffull) + SHARED(sa[1]) % 16384, D(sb[0]))  // <-
}

// Bug a stage behind the last one
// Expected memcheck out of bounds
KERNEL(stage_behind_the_last, 128) {
    COPIED(D(sa[4]), D(sb[0]))  // <-
}

// Bug the copy swizzles by 128 bytes, the descriptor not at all
// Expected memcheck swizzle mismatch
KERNEL(descriptor_without_swizzle, 128) {
    COPIED(DESCRIPTOR(sa[0], 1024, 0), D(sb[0]))  // <-
}

// Bug the copy swizzles by 128 bytes, the descriptor by 64
// Expected memcheck swizzle mismatch
KERNEL(descriptor_of_another_swizzle, 128) {
    COPIED(D(sa[0]), DESCRIPTOR(sb[0], 1024, 2))  // <-
}

// Bug a base offset turns the swizzle of an aligned tile
// Expected memcheck swizzle mismatch
KERNEL(base_offset_of_an_aligned_tile, 128) {
    COPIED(D(sa[0]) | 1ull << 49, D(sb[0]))  // <-
}

#define STORED(bytes, at)                                                                          \
    __shared__ __align__(1024) uint4 room[2048];                                                   \
    __shared__ __align__(1024) uint4 sb[1][64];                                                    \
    uint4 *tile = room + at / 16;                                                                  \
    float x[4] = {};                                                                               \
    const int pieces = bytes / 16;                                                                 \
    for (int i = T; i < 64 * pieces; i += 128)                                                     \
        tile[i / pieces * pieces + (i % pieces ^ i / pieces * pieces / 8 % pieces)] = a[i / pieces * 32 + i % pieces]; \
    PUT(sb[0], b, 0, 8);                                                                      \
    PROXY();                                                                                       \
    __syncthreads();                                                                               \
    FENCE();

// Clean a tile swizzled by 64 bytes
KERNEL(clean_swizzle_of_64, 128) {
    STORED(64, 512)
    ONE(x, DESCRIPTOR(tile, 512, 2), D(sb[0]));
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug a tile swizzled by 128 bytes begins 512 bytes behind a multiple of 1,024
// Expected memcheck misaligned matrix
KERNEL(tile_of_128_at_512, 128) {
    STORED(128, 512)  // <-
    ONE(x, DESCRIPTOR(tile, 1024, 1), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug a tile swizzled by 64 bytes begins 128 bytes behind a multiple of 512
// Expected memcheck misaligned matrix
KERNEL(tile_of_64_at_128, 128) {
    STORED(64, 128)  // <-
    ONE(x, DESCRIPTOR(tile, 512, 2), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug a tile swizzled by 32 bytes begins 128 bytes behind a multiple of 256
// Expected memcheck misaligned matrix
KERNEL(tile_of_32_at_128, 128) {
    STORED(32, 128)  // <-
    ONE(x, DESCRIPTOR(tile, 256, 3), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

#define READY TILES(1); BOTH(sa[0], sb[0], 0); PROXY(); __syncthreads(); FENCE()

// Bug one warp of the group does not multiply
// Expected synccheck deadlock
KERNEL(three_warps_of_a_group, 128) {
    READY;
    if (T < 96) { MULTIPLY(x, D(sa[0]), D(sb[0])); COMMIT(); WAIT(0); }  // <-
    STORE(x);
}

// Bug half of each warp multiplies
// Expected synccheck divergent thread(s) in warp
KERNEL(half_of_each_warp, 128) {
    READY;
    if (c[T % 32 / 16] != 0) { MULTIPLY(x, D(sa[0]), D(sb[0])); COMMIT(); WAIT(0); }  // <-
    STORE(x);
}

// Bug the last warp left
// Expected synccheck deadlock
KERNEL(a_warp_that_left, 128) {
    TILES(1);
    if (T >= 96) return;
    BOTH(sa[0], sb[0], 0);
    PROXY();
    __syncthreads();
    FENCE();  // <-
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);  // <-
    STORE(x);
}

// Bug the sums are stored before wgmma has written them
// Expected racecheck early read of a result
// Patch WARPGROUP.DEPBAR
KERNEL(stores_sums_early, 128) {
    READY;
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);  // <-
}

// Bug the sums are scaled before wgmma has written them
// Expected racecheck early read of a result
// Patch WARPGROUP.DEPBAR
KERNEL(scales_sums_early, 128) {
    READY;
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    for (int i = 0; i < 4; i++) x[i] *= 3.0f;  // <-
    STORE(x);
}

// Bug registers of A change while wgmma reads them
// Expected racecheck early write of an operand
// Patch WARPGROUP.DEPBAR
KERNEL(changes_a_early, 128) {
    READY;
    unsigned y[4] = {T, T + 1, T + 2, T + 3};
    for (int k = 0; k < tiles; k++) {
        FENCE();
        OF_REGISTERS(x, y, D(sb[0]));  // <-
        COMMIT();
        WAIT(0);
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = y[i] * 3 + T;  // <-
    }
    STORE(x);
}

// Bug sums are set and wgmma is not told of it
// Expected racecheck missing wgmma.fence
// Patch WARPGROUP.ARRIVE
KERNEL(sums_without_fence, 128) {
    READY;
    for (int i = 0; i < 4; i++) x[i] = c[T * 4 + i];
    FENCE();  // <-
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug registers of A are set and wgmma is not told of it
// Expected racecheck missing wgmma.fence
// Patch WARPGROUP.ARRIVE
KERNEL(a_without_fence, 128) {
    READY;
    unsigned y[4] = {T, T * 3, T * 5, T * 7};
    FENCE();  // <-
    OF_REGISTERS(x, y, D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug sums are scaled between two products without a fence
// Expected racecheck missing wgmma.fence
// Patch WARPGROUP.ARRIVE
KERNEL(scaled_sums_without_fence, 128) {
    READY;
    MULTIPLY(x, D(sa[0]), D(sb[0]));
    COMMIT();
    WAIT(0);
    for (int i = 0; i < 4; i++) x[i] *= 3.0f;
    FENCE();  // <-
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);
}

// Bug the products are in no group, so nothing is waited for
// Expected racecheck early read of a result
// Patch gsb0
KERNEL(stores_sums_of_no_group, 128) {
    READY;
    MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
    COMMIT();
    WAIT(0);
    STORE(x);  // <-
}

// Bug the products are in no group, and the tile is stored again
// Expected racecheck WAR
// Patch gsb0
KERNEL(overwrites_for_no_group, 128) {
    TILES(1);
    for (int k = 0; k < tiles; k++) {
        BOTH(sa[0], sb[0], k);  // <-
        PROXY();
        __syncthreads();
        FENCE();
        MULTIPLY(x, D(sa[0]), D(sb[0]));  // <-
        COMMIT();
        WAIT(0);
        __syncthreads();
    }
    STORE(x);
}

// Bug registers of A change for products of no group
// Expected racecheck early write of an operand
// Patch gsb0
KERNEL(changes_a_of_no_group, 128) {
    READY;
    unsigned y[4] = {T, T + 1, T + 2, T + 3};
    for (int k = 0; k < tiles; k++) {
        FENCE();
        OF_REGISTERS(x, y, D(sb[0]));  // <-
        COMMIT();
        WAIT(0);
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = y[i] * 3 + T;  // <-
    }
    STORE(x);
}
