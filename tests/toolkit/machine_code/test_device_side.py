"""Sources with host code: what is left out, and that nothing else changes."""

import numpy as np
import pytest

from analysis.errors import CompileError, InputError
from toolkit import check, simulate
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.device_side import device_side
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.machine_code.left_out import ItemKind, summary

MIXED = """#include <vector>
#include "helper_cuda.h"
#include <unistd.h>
using namespace std;
#define TILE 32
const int ROWS = 8;
static int verbose = 1;
typedef float real;
template <typename T> T largest(const std::vector<T>& values) { return values[0]; }
__host__ __device__ inline int at(int r, int c, int n) { return r * n + c; }
extern "C" {
__global__ void twice(real* x, int n) {
    int k = at(0, blockIdx.x * TILE + threadIdx.x, n);
    if (k < n) x[k] *= 2;
}
}
void launch(real* x, int n) { twice<<<n / TILE, TILE>>>(x, n); }
int main() {
    std::vector<float> host(1024);
#define AFTER 3
    launch(host.data(), 1024);
}
__global__ void after(int* x) { *x = AFTER; }
"""


def side_of(source, kernel=None, folder=None):
    return device_side(source, name="my.cu", kernel=kernel, folder=folder, folders=[])


def compiled(source, kernel="k", folder=None, options=()):
    return compile_cubin(
        source, name="my.cu", kernel=kernel, arch="sm_90", folder=folder, options=options
    )


def refused(source, kernel="k", folder=None):
    with pytest.raises((CompileError, InputError)) as caught:
        compiled(source, kernel, folder)
    return str(caught.value)


def names(left_out):
    return [(one.kind.value, one.name, one.line) for one in left_out]


def test_host_code_is_blank_and_all_else_stays_in_place():
    side = side_of(MIXED)
    before, after = MIXED.splitlines(), side.source.splitlines()
    assert len(side.source) == len(MIXED)
    blank = {k + 1 for k, line in enumerate(after) if line != before[k]}
    assert blank == {1, 2, 3, 7, 9, 17, 18, 19, 21, 22}  # line 20 is a directive
    assert all(not after[k - 1].strip() for k in blank)
    assert names(side.left_out) == [
        ("include", "vector", 1),
        ("include", "helper_cuda.h", 2),
        ("include", "unistd.h", 3),
        ("variable", "verbose", 7),
        ("function", "largest", 9),
        ("function", "launch", 17),
        ("function", "main", 18),
    ]


def test_a_mixed_source_is_simulated_and_says_what_was_left_out():
    x = np.ones(64, np.float32)
    found = simulate(MIXED, "twice", grid=2, block=32, arguments=[x, np.int32(64)], predict=False)
    assert (found.outputs[0] == 2).all()
    note = "host code left out: 3 functions, 1 variable, 3 includes (--left-out lists them)"
    assert found.notes == (note,)
    checked = check(MIXED, "twice", grid=2, block=32, arguments=[x, np.int32(64)])
    assert checked.notes == (note,)
    kernel = compile_kernel(MIXED, "after", target="sm_90")
    assert kernel.source == MIXED  # the user's text
    assert {line.line for line in kernel.lines.values()} == {23}


def test_a_source_that_compiles_as_it_is_stays_as_it_is():
    guarded = "#ifndef __CUDACC_RTC__\nint main() {}\n#endif\n__global__ void k(int *x) { *x = 1; }"
    assert compiled(guarded).left_out == ()
    # a member without annotations is a host function of nvcc, which the kernel may not call
    assert compiled("__global__ void k(int *x) { *x = 1; }").left_out == ()


def test_headers_of_the_user_are_cut_too(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/tile.cuh").write_text(
        '#pragma once\n#include <iostream>\n#include "../sizes.h"\n'
        "inline void show() { std::cout << TILE; }\n"
        "__device__ int tile() { return TILE; }\n",
        encoding="utf-8",
    )
    (tmp_path / "sizes.h").write_text("#define TILE 16\nint parse(char **);\n", encoding="utf-8")
    source = (
        '#include "inner/tile.cuh"\n__global__ void k(int *x) { *x = tile(); }\nint main() {}\n'
    )
    found = compiled(source, folder=tmp_path)
    assert [(one.file, one.name) for one in found.left_out] == [
        ("my.cu", "main"),
        ("inner/tile.cuh", "iostream"),
        ("inner/tile.cuh", "show"),
        ("../sizes.h", "parse"),
    ]


def test_kernels_in_headers_have_their_parameters(tmp_path):
    (tmp_path / "kernels.cuh").write_text(
        "#include <iostream>\n__global__ void k(float *x, float f) { *x = f; }\n", encoding="utf-8"
    )
    (tmp_path / "main.cu").write_text('#include "kernels.cuh"\nint main() {}\n', encoding="utf-8")
    found = compile_kernel(tmp_path / "main.cu", "k", target="sm_90")
    assert [(one.name, one.dtype) for one in found.declared] == [("x", "float32"), ("f", "float32")]


def test_what_the_compiler_refuses_is_left_out_unless_the_kernel_may_depend_on_it():
    source = (
        "#include <string>\nstruct Options { std::string name; };\n"
        "__global__ void k(int *x) { *x = 1; }\nint main() {}\n"
    )
    left_out = compiled(source).left_out
    assert ("type", "Options", 2) in names(left_out)
    reason = "std::string is a type of the host, which device code cannot use"
    assert [one.reason for one in left_out if one.name == "Options"] == [reason]
    used = source.replace("*x = 1", "Options o; *x = 1")
    assert refused(used) == f"my.cu, line 2: {reason}"
    wrong = "__global__ void k(int *x) { *x = y; }\nint main() {}\n"
    assert refused(wrong) == 'my.cu, line 1: identifier "y" is undefined'


def test_members_of_the_host_do_not_keep_a_class_from_the_device():
    source = """struct Grid {
    int width;
    Grid(int w) : width(w) { cudaMalloc(&data, w); }
    ~Grid() { cudaFree(data); }
    __device__ int last() const { return width - 1; }
    void *data;
};
__global__ void k(Grid grid, int *x) { *x = grid.last(); }
int main() { Grid grid(4); }
"""
    found = compiled(source)
    assert ("function", "Grid", 3) in names(found.left_out)
    assert [parameter.size for parameter in found.parameters] == [16, 8]


def test_a_kernel_that_calls_a_host_function_is_refused_even_if_one_is_built_in():
    mine = (
        "float {0}(float x) {{ return x * x; }}\n__global__ void k(float *x) {{ *x = {0}(*x); }}\n"
    )
    for name in ("square", "rsqrtf"):
        assert refused(f"{mine.format(name)}int main() {{}}\n") == (
            f"my.cu, line 2: {name} is a host function (my.cu, line 1): write __device__ before it"
        )


def test_declarations_for_the_device_keep_definitions_that_do_not_repeat_it():
    source = (
        "__device__ float twice(float x);\n__global__ void k(float *x) { *x = twice(*x); }\n"
        "float twice(float x) { return 2 * x; }\nint main() {}\n"
    )
    assert [one.name for one in compiled(source).left_out] == ["main"]


def test_a_variable_in_a_function_of_a_class_declares_no_function():
    source = (
        "struct Shape {\n"
        "    float size;\n"
        "    static __device__ void go(float *x) { __shared__ Shape draw; draw.size = *x; }\n"
        "};\n"
        "__global__ void k(float *x) { Shape::go(x); }\n"
        "void help() {}\n"
        "void draw() { help(); }\n"
        "int main() {}\n"
    )
    assert [one.name for one in compiled(source).left_out] == ["help", "draw", "main"]


def test_a_constant_that_nvcc_computes_is_computed():
    source = (
        "#include <vector>\ntypedef float real;\nconst real a = 1.9;\nconst real b = a * a;\n"
        "__global__ void k(real *x) { x[0] = b; }\nint main() {}\n"
    )
    found = simulate(source, grid=1, block=1, arguments=[np.zeros(1, "f4")], predict=False)
    assert found.outputs[0][0] == np.float32(1.9) * np.float32(1.9)
    assert refused(source.replace("a * a", "sqrtf(a)")).startswith(
        "my.cu, line 4: expression must have a constant value"
    )


@pytest.mark.parametrize(
    ("header", "kernel"),
    [
        ("torch/extension.h", "__global__ void k(half *x) { *x = __float2half(2); }"),
        ("torch/all.h", "__global__ void k(float *x) { *x = std::numeric_limits<float>::max(); }"),
        ("cublas_v2.h", "typedef __nv_bfloat16 real; __global__ void k(real *x) { *x = real(2); }"),
        ("cufftXt.h", "__global__ void k(cufftComplex *x, cufftReal y) { x->y = y; }"),
    ],
)
def test_headers_of_libraries_bring_the_types_that_device_code_uses(header, kernel):
    source = f"#include <{header}>\n{kernel}\nvoid call() {{}}\n"
    assert [one.name for one in compiled(source).left_out] == ["call"]


def test_a_kernel_that_an_if_leaves_out_is_no_template():
    source = "#ifdef FAST\n__global__ void fast(int *x) {}\n#endif\n__global__ void k(int *x) {}\n"
    assert refused(source, kernel="fast") == (
        "kernel 'fast' stands in a part of my.cu that an #if leaves out; the kernels there: k"
    )


def test_macros_that_stand_for_the_device_are_known():
    source = (
        "#define HD __host__ __device__\n#define INLINE HD inline\n"
        "#define KERNEL(n) __global__ void n\n"
        "INLINE int one() { return 1; }\nKERNEL(k)(int *x) { *x = one(); }\nint main() {}\n"
    )
    assert [one.name for one in compiled(source).left_out] == ["main"]


def test_conditions_on_macros_of_nvcc_and_its_host_compiler_hold():
    source = (
        "#if defined(__NVCC__) && defined(__linux__)\n#define VALUE 1\n#else\n#error none\n#endif\n"
        "__global__ void k(int *x) { *x = VALUE; }\nint main() {}\n"
    )
    assert compiled(source)


@pytest.mark.parametrize(
    "lines",
    [
        "#include <algorithm>\n__global__ void k(float *x) { *x = std::max(*x, 1.0f); }",
        "#include <limits>\n__global__ void k(int *x) { *x = std::numeric_limits<int>::max(); }",
        "__global__ void k(uint *x) { *x = INT_MAX; }",
        "__global__ void k(float *x) { register float y = std::sqrt(*x); *x = y; }",
        "#include <cub/cub.cuh>\n__global__ void k(float *x) { *x = 1; }",
        "#include <thrust/device_vector.h>\n__global__ void k(float *x) { *x = 1; }",
        '#include <string>\nconst char *file = "a.bin";\n__global__ void k(float *x) { *x = 1; }',
        "namespace n { int hosts() { return 1; }\n__global__ void k(float *x) { *x = 1; } }",
    ],
)
def test_what_nvcc_takes_is_taken(lines):
    kernel = "n::k" if "namespace" in lines else "k"
    assert compiled(f"{lines}\nint main() {{ return 0; }}\n", kernel)


def test_a_source_without_a_kernel_says_so():
    assert refused("#include <vector>\nint main() { return 0; }\n", None) == (
        "my.cu holds no kernel: it has no __global__ function, nor have its headers"
    )


def test_a_header_that_is_missing_is_named_only_if_device_code_may_need_it():
    source = '#include <unistd.h>\n#include <omp.h>\n#include "tile.h"\n{}\nint main() {{}}\n'
    assert [one.name for one in compiled(source.format("__global__ void k() {}")).left_out] == [
        "unistd.h",
        "omp.h",
        "tile.h",
        "main",
    ]
    assert refused(source.format("__global__ void k(int *x) { *x = TILE; }")) == (
        "my.cu, line 3: there is no tile.h beside the source: name its folder: --option -IFOLDER"
    )


def test_the_summary_counts_each_kind():
    left_out = side_of(MIXED).left_out
    assert summary(()) == ()
    assert summary(left_out[-1:]) == ("host code left out: 1 function (--left-out lists it)",)
    assert {one.kind for one in left_out} == {
        ItemKind.FUNCTION,
        ItemKind.INCLUDE,
        ItemKind.VARIABLE,
    }


def test_a_variable_of_the_host_is_named():
    source = "int width = 4;\n__global__ void k(int *x) { *x = width; }\nint main() {}\n"
    assert refused(source) == (
        "my.cu, line 2: width is a variable of the host (my.cu, line 1): pass it as an argument, "
        "or make it const or __device__"
    )


def test_a_header_that_was_not_found_is_said():
    left_out = compiled('#include "mine.h"\n__global__ void k() {}\nint main() {}\n').left_out
    assert summary(left_out)[1] == (
        "compiled without mine.h: no such file was found beside the source; if device code needs "
        "it, name its folder: --option -IFOLDER"
    )


def test_a_define_that_changes_the_headers_of_cuda_is_named():
    source = "__global__ void k(int *x) { *x = T; }\n"
    with pytest.raises(InputError) as caught:
        compile_cubin(source, name="my.cu", kernel="k", arch="sm_90", defines={"T": 3})
    assert str(caught.value) == (
        "my.cu: define T = 3 changes CUDA's own headers, which use this name: give the macro "
        "another name"
    )


def test_a_product_counts_for_the_line_of_the_kernel():
    source = """#include <mma.h>
using namespace nvcuda;
__global__ void k(half *a, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(x, a, 16);
    wmma::load_matrix_sync(y, a, 16);
    wmma::fill_fragment(sum, 0);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
"""
    a = np.arange(256, dtype=np.float16).reshape(16, 16) % 16
    arrays = [a, np.zeros((16, 16), np.float32)]
    found = simulate(source, "k", grid=1, block=32, arguments=arrays, predict=False)
    np.testing.assert_array_equal(found.outputs[1], a.astype(np.float32) @ a.astype(np.float32))
    name = "sm__inst_executed_pipe_tensor_op_hmma.sum"
    assert [line for (_, line), counters in found.lines.items() if counters.get(name)] == [10]


BINDINGS = """#include <torch/extension.h>
#define CALLED(x) k(x)
#define KERNEL(name, type) \\
    __global__ void name(type *x) { x[threadIdx.x] = 2; }
#define BIND(kind, type, \\
             pack) \\
    void run_##kind(torch::Tensor x) { k<<<1, 32>>>((type *)x.data_ptr()); }
__global__ void k(float *x) { x[threadIdx.x] = 1; }

// bindings; with comments
BIND(f32, torch::kFloat32, 1)  // one
BIND(f32x4, torch::kFloat32,
     4)

KERNEL(made, float)
BIND(f16, torch::kHalf, 8)
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  BIND(f32)
  BIND(f16)
}
"""


@pytest.mark.parametrize("kernel", ["k", "made"])
def test_calls_of_macros_between_functions_end_without_a_semicolon(kernel):
    assert compiled(BINDINGS, kernel).name == kernel
    assert [one.line for one in side_of(BINDINGS).left_out] == [11, 12, 16, 17]


@pytest.mark.parametrize("host", ["", "int main() { k<<<1, 1>>>(nullptr); }"])
def test_a_header_may_begin_with_a_byte_order_mark(tmp_path, host):
    own = "#pragma once\n__device__ float twice(float x) { return 2 * x; }\n"
    (tmp_path / "own.h").write_text(own, encoding="utf-8-sig")
    kernel = '#include "own.h"\n__global__ void k(float *x) { *x = twice(*x); }\n'
    (tmp_path / "my.cu").write_text(kernel + host, encoding="utf-8")
    found = compile_kernel(tmp_path / "my.cu", target="sm_90")
    assert {line.line for line in found.lines.values() if line.file == "my.cu"} <= {2}
