// What .cu files of public repositories use of PyTorch in their host code, so that they compile without it.
#pragma once
#include <iostream>
#include <stdexcept>
namespace torch {
enum Type { kHalf, kFloat32 };
struct Options { Type dtype() const { return kHalf; } };
inline std::ostream& operator<<(std::ostream& out, Options) { return out; }
struct Tensor {
    void* data_ptr() { return nullptr; }
    long size(int) const { return 0; }
    Options options() const { return {}; }
};
}
