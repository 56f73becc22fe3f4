// How many terms carry the sums of a product, as samples of its operands say (samples.cuh).

enum Terms : unsigned {
    MANY,  // several comparable ones in each 64 of K
    SOME,
    FEW,
};
