// A step of breadth-first search: a thread per vertex of a graph with uneven degrees. No expected answer.
#include <cstdlib>
#include <vector>

__global__ void bfs_step(const int *offsets, const int *edges, const int *levels, int *next,
                         int level, int *changed, int vertices) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < vertices && levels[v] == level) {
        for (int e = offsets[v]; e < offsets[v + 1]; e++) {
            int w = edges[e];
            if (levels[w] == -1) {
                next[w] = level + 1;
                *changed = 1;
            }
        }
    }
}

int main(int argc, char **argv) {
    int vertices = 1 << 20;
    std::vector<int> offsets(vertices + 1), edges, levels(vertices, -1);
    srand(7);
    for (int v = 0; v < vertices; v++) {
        int degree = v % 64 == 0 ? 128 : rand() % 12;
        for (int e = 0; e < degree; e++) edges.push_back(rand() % vertices);
        offsets[v + 1] = edges.size();
        if (v % 3 == 0) levels[v] = 4;
    }
    int *d_offsets, *d_edges, *d_levels, *d_next, *d_changed;
    cudaMalloc(&d_offsets, offsets.size() * sizeof(int));
    cudaMalloc(&d_edges, edges.size() * sizeof(int));
    cudaMalloc(&d_levels, vertices * sizeof(int));
    cudaMalloc(&d_next, vertices * sizeof(int));
    cudaMalloc(&d_changed, sizeof(int));
    cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_edges, edges.data(), edges.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_levels, levels.data(), vertices * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_next, levels.data(), vertices * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(d_changed, 0, sizeof(int));
    bfs_step<<<(vertices + 255) / 256, 256>>>(d_offsets, d_edges, d_levels, d_next, 4, d_changed,
                                               vertices);
    cudaDeviceSynchronize();
}
