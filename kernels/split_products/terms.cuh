// How many terms carry the sums of a product, as samples of its operands say (samples.cuh). Tensor cores cut sums off towards
// zero. That costs a sum of many comparable terms about the same part of its size in each 64 of K, which is given back.
// Not where one operand has no low parts: sums that float32 holds exactly, such as those of integers, stay exact. Where
// few terms carry a sum, low parts decide instead.

enum Terms : unsigned {
    MANY,  // sums of 64 of K have several comparable terms: multiplied by GIVE_BACK when they are added
    SOME,
    FEW,  // the product of low parts counts too, and small products are added apart from large ones
};
constexpr float GIVE_BACK = 1.0f + 0x1p-23f;

// A vector's spread is the sum of its magnitudes over the largest one: as many elements of that size would give it.
constexpr float LEAST_OF_MANY = 1.0f / 16;  // spread for each k: four for 64
constexpr float MOST_OF_FEW = 4.0f;         // spread of all vectors that were looked at
