// A CUDA runtime for machines without a GPU that records launches: device memory is host memory,
// kernels are not executed. Built and preloaded by `validation.public_launches.capture`.
//
// RECORD_FOLDER receives the fat binaries (fatbin.0 ...) and `launches.jsonl`: a launch per line
// with grid, block, the bytes of each parameter, and for each pointer what its memory holds.
// RECORD_TABLE has a line per kernel: symbol, number of parameters, and their sizes.

#include <cuda_runtime.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kMostConfigurations = 4;  // different grids or blocks of a kernel that are recorded
constexpr unsigned kSecondsAfterFirst = 3;  // then the program ends: the rest checks results
constexpr size_t kMostSymbolBytes = 65536;

struct Symbol {
    std::string name;
    std::vector<unsigned char> storage;
    bool set = false;
};

struct State {
    std::map<uintptr_t, size_t> allocations;
    std::map<const void *, std::string> kernels;
    std::map<const void *, Symbol> symbols;
    std::map<std::string, std::vector<size_t>> parameters;
    std::map<std::string, std::set<std::string>> seen;
    int fatbins = 0;
    FILE *out = nullptr;
};

State &state() {
    static State *one = [] {
        auto *made = new State;
        std::ifstream table(getenv("RECORD_TABLE") ? getenv("RECORD_TABLE") : "/dev/null");
        std::string line;
        while (std::getline(table, line)) {
            std::istringstream words(line);
            std::string name;
            size_t count = 0, size = 0;
            words >> name >> count;
            std::vector<size_t> sizes;
            while (words >> size) sizes.push_back(size);
            made->parameters[name] = sizes;
        }
        std::string folder = getenv("RECORD_FOLDER") ? getenv("RECORD_FOLDER") : ".";
        made->out = fopen((folder + "/launches.jsonl").c_str(), "a");
        return made;
    }();
    return *one;
}

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

float half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float value = exponent == 0    ? std::ldexp((float)mantissa, -24)
                  : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                   : std::ldexp((float)(mantissa + 1024), exponent - 25);
    return bits >> 15 ? -value : value;
}

float bfloat_value(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, 4);
    return value;
}

struct Statistics {
    double low = INFINITY, high = -INFINITY;
    size_t nonzero = 0, odd = 0;  // odd: not finite, or a denormal or huge number
    bool ascending = true, by_one = true;
};

template <typename T, typename Read>
std::string statistics(const char *name, const T *data, size_t count, Read read) {
    Statistics found;
    double before = 0;
    for (size_t i = 0; i < count; i++) {
        double value = read(data[i]);
        if (!std::isfinite(value) || (value != 0 && (std::fabs(value) < 1e-30 || std::fabs(value) > 1e30))) {
            found.odd++;
            continue;
        }
        found.low = std::min(found.low, value);
        found.high = std::max(found.high, value);
        found.nonzero += value != 0;
        if (i && value < before) found.ascending = false;
        if (i && value != before + 1) found.by_one = false;
        before = value;
    }
    char text[400];
    snprintf(text, sizeof text,
             "\"%s\":{\"count\":%zu,\"low\":%.17g,\"high\":%.17g,\"nonzero\":%zu,\"odd\":%zu,\"ascending\":%s,\"by_one\":%s",
             name, count, std::isfinite(found.low) ? found.low : 0.0, std::isfinite(found.high) ? found.high : 0.0,
             found.nonzero, found.odd, found.ascending ? "true" : "false", found.by_one ? "true" : "false");
    std::string whole = text;
    if (sizeof(T) == 4 && std::string(name) == "i32" && found.low == 0 && found.high == (double)count - 1) {
        std::vector<bool> there(count);
        bool each_once = true;
        for (size_t i = 0; i < count && each_once; i++) {
            size_t value = (size_t)read(data[i]);
            each_once = !there[value];
            there[value] = true;
        }
        if (each_once) whole += ",\"permutation\":true";
    }
    return whole + "}";
}

std::string described(const void *data, size_t bytes) {
    const auto *words = (const uint64_t *)data;
    bool zero = true;
    for (size_t i = 0; i < bytes / 8 && zero; i++) zero = words[i] == 0;
    for (size_t i = bytes / 8 * 8; i < bytes && zero; i++) zero = ((const char *)data)[i] == 0;
    if (zero) return "\"zero\":true";
    auto plain = [](auto value) { return (double)value; };
    std::string found = statistics("i8", (const int8_t *)data, bytes, plain);
    found += "," + statistics("u8", (const uint8_t *)data, bytes, plain);
    if (bytes % 2 == 0) {
        found += "," + statistics("i16", (const int16_t *)data, bytes / 2, plain);
        found += "," + statistics("f16", (const uint16_t *)data, bytes / 2, half_value);
        found += "," + statistics("bf16", (const uint16_t *)data, bytes / 2, bfloat_value);
    }
    if (bytes % 4 == 0) {
        found += "," + statistics("i32", (const int32_t *)data, bytes / 4, plain);
        found += "," + statistics("f32", (const float *)data, bytes / 4, plain);
    }
    if (bytes % 8 == 0) {
        found += "," + statistics("i64", (const int64_t *)data, bytes / 8, plain);
        found += "," + statistics("f64", (const double *)data, bytes / 8, plain);
    }
    return found;
}

void record(const std::string &name, dim3 grid, dim3 block, void **values, size_t shared, bool cooperative) {
    State &all = state();
    auto sizes = all.parameters.find(name);
    if (sizes == all.parameters.end() || all.out == nullptr) return;
    char key[200];
    snprintf(key, sizeof key, "%u %u %u %u %u %u %zu", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
    auto &seen = all.seen[name];
    if (seen.size() >= kMostConfigurations || !seen.insert(key).second) return;
    std::set<uintptr_t> starts;
    for (size_t i = 0; i < sizes->second.size(); i++)
        if (sizes->second[i] == 8) starts.insert(*(uintptr_t *)values[i]);
    std::string line = "{\"kernel\":\"" + name + "\",\"grid\":[" + std::to_string(grid.x) + "," +
                       std::to_string(grid.y) + "," + std::to_string(grid.z) + "],\"block\":[" +
                       std::to_string(block.x) + "," + std::to_string(block.y) + "," + std::to_string(block.z) +
                       "],\"shared\":" + std::to_string(shared) +
                       ",\"cooperative\":" + (cooperative ? "true" : "false") + ",\"parameters\":[";
    for (size_t i = 0; i < sizes->second.size(); i++) {
        size_t size = sizes->second[i];
        const auto *bytes = (const unsigned char *)values[i];
        line += i ? ",{" : "{";
        line += "\"bytes\":\"";
        char two[3];
        for (size_t k = 0; k < size; k++) {
            snprintf(two, 3, "%02x", bytes[k]);
            line += two;
        }
        line += "\"";
        for (size_t k = 0; k + 8 <= size; k += 8) {
            uintptr_t word;
            memcpy(&word, bytes + k, 8);
            auto after = all.allocations.upper_bound(word);
            if (after == all.allocations.begin()) continue;
            auto [start, length] = *std::prev(after);
            if (word >= start + length) continue;
            if (size != 8) {
                line += ",\"pointer_inside\":true";
                break;
            }
            uintptr_t end = start + length;
            auto next = starts.upper_bound(word);
            if (next != starts.end()) end = std::min(end, *next);
            line += ",\"offset\":" + std::to_string(word - start) + ",\"length\":" + std::to_string(end - word) +
                    ",\"content\":{" + described((void *)word, end - word) + "}";
        }
        line += "}";
    }
    line += "],\"symbols\":{";
    bool first = true;
    for (auto &[address, symbol] : all.symbols)
        if (symbol.set) {
            line += std::string(first ? "" : ",") + "\"" + symbol.name + "\":{\"length\":" +
                    std::to_string(symbol.storage.size()) + ",\"content\":{" +
                    described(symbol.storage.data(), symbol.storage.size()) + "}}";
            first = false;
        }
    line += "}}\n";
    fputs(line.c_str(), all.out);
    fflush(all.out);
    static bool is_first = true;
    if (is_first) alarm(kSecondsAfterFirst);
    is_first = false;
}

cudaError_t launch(const void *function, dim3 grid, dim3 block, void **values, size_t shared, bool cooperative) {
    auto found = state().kernels.find(function);
    if (found != state().kernels.end()) record(found->second, grid, block, values, shared, cooperative);
    return cudaSuccess;
}

cudaError_t allocate(void **pointer, size_t bytes) {
    size_t whole = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
    void *made = aligned_alloc(4096, whole);
    if (made == nullptr) return cudaErrorMemoryAllocation;
    memset(made, 0, whole);
    *pointer = made;
    state().allocations[(uintptr_t)made] = bytes;
    return cudaSuccess;
}

cudaError_t release(void *pointer) {
    if (state().allocations.erase((uintptr_t)pointer)) free(pointer);
    return cudaSuccess;
}

cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
    for (size_t row = 0; row < height; row++)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return cudaSuccess;
}

unsigned char *symbol_bytes(const void *symbol) {
    auto found = state().symbols.find(symbol);
    return found == state().symbols.end() ? nullptr : found->second.storage.data();
}

}  // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *wrapper) {
    struct Wrapper { int magic, version; const unsigned char *data; void *file; };
    const unsigned char *data = ((Wrapper *)wrapper)->data;
    uint16_t header;
    uint64_t size;
    memcpy(&header, data + 6, 2);
    memcpy(&size, data + 8, 8);
    State &all = state();
    if (getenv("RECORD_FATBINS")) {
        std::string path = std::string(getenv("RECORD_FOLDER")) + "/fatbin." + std::to_string(all.fatbins);
        if (FILE *file = fopen(path.c_str(), "wb")) {
            fwrite(data, 1, header + size, file);
            fclose(file);
        }
    }
    all.fatbins++;
    return (void **)new int(0);
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 1; }
void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *) {
    state().kernels[function] = name;
}
void __cudaRegisterVar(void **, char *variable, char *, const char *name, int, size_t size, int, int) {
    state().symbols[variable] = Symbol{name, std::vector<unsigned char>(size), false};
}
void __cudaRegisterManagedVar(void **, void **variable, char *, const char *name, int, size_t size, int, int) {
    *variable = calloc(1, size);
    (void)name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    Configuration last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    *(cudaStream_t *)stream = last.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **values, size_t shared,
                               cudaStream_t) {
    return launch((const void *)kernel, grid, block, values, shared, false);
}
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **values, size_t shared,
                             cudaStream_t) {
    return launch(function, grid, block, values, shared, false);
}
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **values, size_t shared,
                                        cudaStream_t) {
    return launch(function, grid, block, values, shared, true);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) { return allocate(pointer, bytes); }
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t) { return allocate(pointer, bytes); }
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned) { return allocate(pointer, bytes); }
cudaError_t cudaMallocHost(void **pointer, size_t bytes) { *pointer = calloc(1, bytes); return cudaSuccess; }
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned) { *pointer = calloc(1, bytes); return cudaSuccess; }
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return allocate(pointer, *pitch * height);
}
cudaError_t cudaFree(void *pointer) { return release(pointer); }
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t) { return release(pointer); }
cudaError_t cudaFreeHost(void *pointer) { free(pointer); return cudaSuccess; }
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
    memmove(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    memmove(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind) {
    return copy_rows(to, to_pitch, from, from_pitch, width, height);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind, cudaStream_t) {
    return copy_rows(to, to_pitch, from, from_pitch, width, height);
}
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    for (size_t row = 0; row < height; row++) memset((char *)to + row * pitch, value, width);
    return cudaSuccess;
}
cudaError_t cudaMemset(void *to, int value, size_t bytes) { memset(to, value, bytes); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
    memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind) {
    if (unsigned char *to = symbol_bytes(symbol)) {
        memcpy(to + offset, from, bytes);
        state().symbols[symbol].set = state().symbols[symbol].storage.size() <= kMostSymbolBytes;
    }
    return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
    if (unsigned char *from = symbol_bytes(symbol)) memcpy(to, from + offset, bytes);
    return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    *pointer = symbol_bytes(symbol);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int) {
    memset(found, 0, sizeof *found);
    strcpy(found->name, "NVIDIA H200");
    found->major = 9;
    found->minor = 0;
    found->multiProcessorCount = 132;
    found->warpSize = 32;
    found->maxThreadsPerBlock = 1024;
    found->maxThreadsPerMultiProcessor = 2048;
    found->maxBlocksPerMultiProcessor = 32;
    found->maxThreadsDim[0] = found->maxThreadsDim[1] = 1024;
    found->maxThreadsDim[2] = 64;
    found->maxGridSize[0] = 2147483647;
    found->maxGridSize[1] = found->maxGridSize[2] = 65535;
    found->sharedMemPerBlock = 49152;
    found->sharedMemPerBlockOptin = 232448;
    found->sharedMemPerMultiprocessor = 233472;
    found->regsPerBlock = found->regsPerMultiprocessor = 65536;
    found->totalConstMem = 65536;
    found->totalGlobalMem = 140ull << 30;
    found->l2CacheSize = 62914560;
    found->managedMemory = found->concurrentManagedAccess = found->unifiedAddressing = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
        case cudaDevAttrMultiProcessorCount: *value = 132; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = 49152; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 233472; break;
        case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
        case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
        case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
        case cudaDevAttrMaxBlocksPerMultiprocessor: *value = 32; break;
        case cudaDevAttrL2CacheSize: *value = 62914560; break;
        default: *value = 1;
    }
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    *available = 100ull << 30;
    *total = 140ull << 30;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, size_t) {
    *blocks = 2;
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t *stream) { *stream = nullptr; return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { *stream = nullptr; return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *event) { *event = nullptr; return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) { *event = nullptr; return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) { *stream = nullptr; return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = *greatest = 0; return cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *banks) {
    *banks = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void *, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void *) { return cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void **pointer, void *host, unsigned) { *pointer = host; return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) { *ms = 1; return cudaSuccess; }

}  // extern "C"
