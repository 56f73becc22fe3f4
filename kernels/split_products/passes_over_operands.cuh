// Both operands, and the two passes over them: rows along are done after the first one, columns across after the second.

#ifndef A_ALONG
#define A_ALONG 1  // A is stored M x K, else K x M
#endif
#ifndef B_ALONG
#define B_ALONG 0  // B is stored N x K, else K x N
#endif
#ifndef A_QUADS
#define A_QUADS 0  // rows of A begin on 16 bytes
#endif
#ifndef B_QUADS
#define B_QUADS 0
#endif
#ifndef ROW_WARPS
#define ROW_WARPS 1  // that share a row along
#endif
#ifndef ROW_QUADS
#define ROW_QUADS 8  // of a lane
#endif
#ifndef UNIT_ROWS
#define UNIT_ROWS 8  // of 128 columns, of a warp
#endif
#ifndef CONTROL_BYTES
#define CONTROL_BYTES 1024
#endif

#include "roots.cuh"
#include "halves.cuh"
#include "places.cuh"
#include "equilibrium.cuh"
#include "operand.cuh"

using OperandA = Operand<A_ALONG, A_QUADS, true>;
using OperandB = Operand<B_ALONG, B_QUADS, false>;

struct Arguments {
    const float *A, *B;
    int M, N, K, lda, ldb;
    char* workspace;
    long long zero_bytes, begin_a, begin_b;  // of the workspace: places.cuh, and the parts
    int pitch_a, pitch_b;                    // of the parts
};

struct Operands {
    OperandA a;
    OperandB b;
    Control* control;
    unsigned* terms;

    __device__ Operands(const Arguments& x)
    {
        const Places places(x.workspace, x.zero_bytes, x.M, x.N);
        unsigned *const maxima_b = places.maxima + 2 * size_t(x.M), *const in_a = maxima_b + 2 * size_t(x.N);
        unsigned* const in_b = in_a + x.K;
        const auto parts = [&](long long begin) { return reinterpret_cast<unsigned short*>(x.workspace + begin); };
        a = {x.A, x.M, x.K, x.lda, x.pitch_a, parts(x.begin_a), size_t(A_ALONG ? x.M : x.K) * x.pitch_a,
             places.root_a, places.maxima, places.maxima + x.M, in_a, in_a, in_b};
        b = {x.B, x.N, x.K, x.ldb, x.pitch_b, parts(x.begin_b), size_t(B_ALONG ? x.N : x.K) * x.pitch_b,
             places.root_b, maxima_b, maxima_b + x.N, in_b, in_a, in_b};
        control = places.control, terms = places.terms;
    }

    __device__ int first_items() const { return first_items_of_a() + (B_ALONG ? b.row_items() : b.tile_items()); }
    __device__ int second_items() const { return second_items_of_a() + (B_ALONG ? 0 : b.tile_items()); }

    template <bool EQUILIBRATED> __device__ void first_pass(int item) const
    {
        const int of_a = first_items_of_a();
        if (item < of_a)
            a.template first_pass<EQUILIBRATED>(item, control);
        else
            b.template first_pass<EQUILIBRATED>(item - of_a, control);
    }
    template <bool EQUILIBRATED> __device__ void second_pass(int item) const
    {
        const int of_a = second_items_of_a();
        if (item < of_a)
            a.template split_columns<EQUILIBRATED>(item, control);
        else
            b.template split_columns<EQUILIBRATED>(item - of_a, control);
    }

private:
    __device__ int first_items_of_a() const { return A_ALONG ? a.row_items() : a.tile_items(); }
    __device__ int second_items_of_a() const { return A_ALONG ? 0 : a.tile_items(); }
};
