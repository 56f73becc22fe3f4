// Tiles that several blocks share along K. Each block stores its sums, and the one that ends last adds them in the order
// of K, so that the result has the same bits in each run. No block waits for another.

template <int QUADS> struct SharedTile {
    static constexpr int THREADS = 128;  // of the warpgroup that has these rows
    unsigned* ticket;  // shares that are stored; zero before and after
    float4* sums;      // of each share: QUADS of each thread
    int half, shares;

    __device__ SharedTile(int tile, int half, int shares, char* workspace, long long begin_sums) : half(half), shares(shares)
    {
        const int number = 2 * tile + half;
        ticket = reinterpret_cast<unsigned*>(workspace + TICKETS_BEGIN) + number;
        sums = reinterpret_cast<float4*>(workspace + begin_sums) + size_t(number) * shares * QUADS * THREADS;
    }

    // Store the sums of a share. True in the warpgroup that ends last, whose `sum` is that of all shares then.
    template <int PASSES, int COUNT> __device__ bool all_added(float (&sum)[PASSES][COUNT], int share) const
    {
        __shared__ bool is_last[2];
        const int thread = threadIdx.x % THREADS;
        float4* const mine = sums + size_t(share) * QUADS * THREADS + thread;
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const float* const x = &sum[i * 4 / COUNT][i * 4 % COUNT];
            __stcg(mine + i * THREADS, make_float4(x[0], x[1], x[2], x[3]));
        }
        __threadfence();
        sync_half();
        if (thread == 0) {
            is_last[half] = atomicAdd(ticket, 1) == shares - 1;
            if (is_last[half]) *ticket = 0;
            __threadfence();
        }
        sync_half();
        if (!is_last[half]) return false;
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass)
#pragma unroll
            for (int i = 0; i < COUNT; ++i) sum[pass][i] = 0.0f;
        for (int other = 0; other < shares; ++other) {
            const float4* const from = sums + size_t(other) * QUADS * THREADS + thread;
#pragma unroll
            for (int i = 0; i < QUADS; ++i) {
                const float4 found = __ldcg(from + i * THREADS);
                float* const x = &sum[i * 4 / COUNT][i * 4 % COUNT];
                x[0] += found.x, x[1] += found.y, x[2] += found.z, x[3] += found.w;
            }
        }
        return true;
    }

private:
    __device__ void sync_half() const { asm volatile("barrier.sync.aligned %0, %1;" ::"r"(2 + half), "n"(THREADS) : "memory"); }
};
