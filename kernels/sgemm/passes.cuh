// Rungs 8 to 10: how a block passes over the tiles of A and B to store them, A transposed and swizzled.

constexpr int A_ROWS_PER_PASS = THREADS / (BK / 4);
constexpr int B_ROWS_PER_PASS = THREADS / (BN / 4);
constexpr int A_ROWS_PER_WARP = 32 / (BK / 4);  // that one warp stores in one instruction
static_assert(BK % 4 == 0 && A_ROWS_PER_WARP % 4 == 0, "a float4 stays together, in its row and swizzled");
static_assert(THREADS % (BK / 4) == 0 && BM % A_ROWS_PER_PASS == 0, "every pass over the tile of A is full");
static_assert(THREADS % (BN / 4) == 0 && BK % B_ROWS_PER_PASS == 0, "every pass over the tile of B is full");

// where a row of A stands in row k of the transposed tile: a warp stores BK / 4 such rows at once
__device__ constexpr int swizzled(int k, int row) { return row ^ k / 4 * A_ROWS_PER_WARP; }
