    // Slice by slice into shared memory, [slice][float][thread of the slice]: by floats, since sums that
    // are stored by quads lie in the banks of B's columns (rung 16). The ring is drained.
    __syncthreads();
    float* const parts = reinterpret_cast<float*>(ring_of_tiles);
    const int thread = t % SLICE;
    const auto part = [&](int of_slice, int n) -> float& { return parts[(of_slice * TM * TN + n) * SLICE + thread]; };
#pragma unroll
    for (int n = 0; n < TM * TN; ++n) part(slice, n) = sum[n / TN][n % TN];
    __syncthreads();

    // From here on slice s has quads s, s + SLICES, ... of the tile.
    constexpr int OWN = (QUADS + SLICES - 1) / SLICES;
    const auto owns = [&](int n) { return QUADS % SLICES == 0 || slice + n * SLICES < QUADS; };
    float4 total[OWN];
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        total[n] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int s = 0; s < SLICES; ++s)
            if (owns(n)) {
                const int first = (slice + n * SLICES) * 4;
                add(total[n], make_float4(part(s, first), part(s, first + 1), part(s, first + 2), part(s, first + 3)));
            }
    }
