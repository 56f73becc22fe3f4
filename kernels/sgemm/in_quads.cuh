// whether every row of a matrix begins on 16 bytes
__device__ bool in_quads(const float* matrix, int columns)
{
    return columns % 4 == 0 && size_t(matrix) % 16 == 0;
}
