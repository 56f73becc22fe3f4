// to = alpha * from + beta * to, for batches of matrices with any strides, which are in floats.
//
// A block copies tiles of 32 x 32 through shared memory, so that its lanes read and write along the
// axis whose elements are closer together. `to` is not read if beta is 0.

constexpr int TILE = 32, ROWS = 8;  // rows at a time

__device__ bool by_rows(long long row, long long column) { return llabs(column) <= llabs(row); }

extern "C" __global__ void __launch_bounds__(TILE * ROWS)
strided_copy(const float* __restrict__ from, float* __restrict__ to, int rows, int columns, int batches,
             long long from_row, long long from_column, long long from_batch,
             long long to_row, long long to_column, long long to_batch, float alpha, float beta)
{
    __shared__ float tile[TILE][TILE + 1];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const bool reads_by_rows = by_rows(from_row, from_column), writes_by_rows = by_rows(to_row, to_column);
    const int across = (columns - 1) / TILE + 1, down = (rows - 1) / TILE + 1;
    const long long tiles = (long long)across * down * batches;

    for (long long n = blockIdx.x; n < tiles; n += gridDim.x) {
        const int first_column = int(n % across) * TILE, first_row = int(n / across % down) * TILE;
        const long long batch = n / across / down;
        for (int step = y; step < TILE; step += ROWS) {
            const int i = reads_by_rows ? step : x, j = reads_by_rows ? x : step;
            const long long row = first_row + i, column = first_column + j;
            if (row < rows && column < columns)
                tile[i][j] = from[row * from_row + column * from_column + batch * from_batch];
        }
        __syncthreads();  // the tile is complete
        for (int step = y; step < TILE; step += ROWS) {
            const int i = writes_by_rows ? step : x, j = writes_by_rows ? x : step;
            const long long row = first_row + i, column = first_column + j;
            if (row < rows && column < columns) {
                float* const at = &to[row * to_row + column * to_column + batch * to_batch];
                *at = beta == 0.0f ? alpha * tile[i][j] : alpha * tile[i][j] + beta * *at;
            }
        }
        __syncthreads();  // the tile may be overwritten
    }
}
