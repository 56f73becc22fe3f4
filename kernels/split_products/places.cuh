// Where things are in the workspace of a product: first what is zero between calls.

constexpr int PHASES = 3;
struct Control {
    unsigned special;  // not 0: some row of A or column of B has Inf or NaN
    unsigned suspect;  // not 0: samples are such that operands may need equilibration
    unsigned leavers;  // blocks of the product that need nothing of this any more
    unsigned tickets[PHASES];
    unsigned done[PHASES];
};
constexpr int TICKETS_BEGIN = 256;  // bytes; of tiles that blocks of the product share, up to CONTROL_BYTES

// `zero_bytes` are control and maxima; roots follow them.
struct Places {
    Control* control;
    unsigned* maxima;        // of each row of A and column of B, the same after equilibration, and of each k in A and in B
    float *root_a, *root_b;  // of each row of A and column of B; both begin on 8 bytes
    unsigned* terms;         // what samples say of them: terms.cuh

    __device__ Places(char* workspace, long long zero_bytes, int M, int N)
        : control(reinterpret_cast<Control*>(workspace)), maxima(reinterpret_cast<unsigned*>(workspace) + CONTROL_BYTES / 4),
          root_a(reinterpret_cast<float*>(workspace + zero_bytes)), root_b(root_a + (M + 1) / 2 * 2),
          terms(reinterpret_cast<unsigned*>(root_b + N))
    {
        static_assert(sizeof(Control) <= TICKETS_BEGIN, "tickets begin behind it, and maxima behind them");
    }

    // For the next call, by threads 32 to 127 of each block, when they have read `special`.
    __device__ void set_to_zero(long long zero_bytes) const
    {
        const long long words = (zero_bytes - CONTROL_BYTES) / 4;
        for (long long i = blockIdx.x * 96 + threadIdx.x - 32; i < words; i += gridDim.x * 96) maxima[i] = 0;
        if (threadIdx.x > 32) return;
        __threadfence();
        if (atomicAdd(&control->leavers, 1) == gridDim.x - 1) *control = {};  // all blocks have read it
    }
};

#include "early_start.cuh"
