// Equilibration along K: column k of A is multiplied by 2^t and row k of B divided by it, which leaves the product as it
// is. It is needed where elements are large in A that meet small ones in B and the other way round, so that no product
// comes near to the largest element of its row times that of its column; low parts are then too coarse.

constexpr int LEAST_EXPONENT = 14;  // of the largest product, at most 28: 2^-14 leaves 25 bits of parts of 2^-39
constexpr int MOST_SHIFT = 40;
constexpr int NO_EXPONENT = -1000;  // of 0

__device__ int exponent_of(unsigned magnitude) { return magnitude >> 23 ? int(magnitude >> 23) - 127 : NO_EXPONENT; }

// t of a k whose largest scaled elements in A and in B are given
__device__ int shift_along_k(unsigned in_a, unsigned in_b)
{
    const int a = exponent_of(in_a), b = exponent_of(in_b);
    if (a == NO_EXPONENT || b == NO_EXPONENT) return 0;
    return max(-MOST_SHIFT, min(MOST_SHIFT, (b - a) >> 1));
}
