"""Changes of host variables that no assignment to their names shows, lambdas, macros, pointers."""

import pytest

from analysis.devices import find_device
from analysis.errors import CompileError, InputError
from toolkit import simulate
from toolkit.launch.host_code import HostCode
from toolkit.launch.host_unit import host_unit

BEFORE = """
#define SET(x) x = 20
#define SETUP n = 20;
#define SET_TWICE(x) SET(x); SET(x)
#define ALL_SETUP SETUP
#define CHECK(x) do { x; } while (0)
#define RUN(kernel, grid, ...) kernel<<<grid, 32>>>(__VA_ARGS__); cudaDeviceSynchronize();
#define TIMED(...) start(); RUN(k, 1, __VA_ARGS__) stop()
struct P { int n; };
struct Setter { int &r; void set() { r = 20; } };
struct Method { void get(int &x) { x = 20; } };
__global__ void k(int *p, int n) { p[threadIdx.x] = n; }
void maximize(int &x) { x = 20; }
void through_pointer(void (*f)(int *, int), int *p, int n) { f<<<1, 32>>>(p, n); }
"""


def read(body, value="n"):
    """The kernel and the argument `n` of each launch; LAUNCH in a body is one."""
    launch = f"k<<<1, 32>>>(p, {value});"
    main = f"int main(int argc, char **argv) {{ {body.replace('LAUNCH', launch)} }}"
    code = HostCode(host_unit(BEFORE + main, "my.cu", None), find_device("h200"))
    found = code.launches(assuming=True, kernel="k")
    return [one.arguments[-1].value and one.arguments[-1].value.value for one in found]


@pytest.mark.parametrize(
    "body",
    [
        "int &r = n; r = 20;",
        "auto &r = n; r = 20;",
        "int m = 3, &r = n; r = 20;",
        "int *p = &n; *p = 20;",
        "int *p; p = &n; *p = 20;",
        "for (int *x : {&n}) *x = 20;",
        "std::fill(&n, &n + 1, 20);",
        "auto f = [&]() { n = 20; }; f();",
        "auto f = [&]() { n = 20; }; n = 30; f();",
        "auto f = [&n] { n += 10; }; f();",
        "auto f = [&r = n] { r = 20; }; f();",
        "std::thread t([&] { n = 20; });",
        "auto f = [](int &x) { x = 20; }; f(n);",
        "auto minimize = [](int &x) { x = 20; }; minimize(n);",
        "maximize(n);",
        "std::swap(n, m);",
        'std::istringstream words("20"); words >> n;',
        "while (words >> n) {}",
        "int m; words >> m >> n;",
        "words >> n >> m;",
        "SET(n);",
        "SETUP;",
        "SET_TWICE(n);",
        "ALL_SETUP;",
        "(argc > 0 ? n : m) = 20;",
        "(m, n) = 20;",
        "Setter s{n}; s.set();",
        "Method o; o.get(n);",
    ],
)
def test_what_something_else_may_change_is_unknown(body):
    assert read(f"int n = 10; {body} LAUNCH") == [None]


def test_fields_may_be_changed_through_references_too():
    assert read("P p; p.n = 10; P &q = p; q.n = 20; LAUNCH", "p.n") == [None]


@pytest.mark.parametrize(
    "body",
    [
        "const int &r = n; use(r);",
        'const int *p = &n; printf("%d", *p);',
        "void *arguments[] = {&n};",
        "int m = n >> 1; unsigned u = n >> m;",
        "auto f = [](int x) { x = 3; }; f(n);",
        "auto f = [](int n) { n = 3; }; f(4);",
        "int m; int &r = m; r = 4;",
        "LAUNCH2; int &r = n; r = 30;",
    ],
)
def test_what_only_reads_a_variable_leaves_its_value(body):
    before = body.startswith("LAUNCH2")
    text = body.replace("LAUNCH2", "LAUNCH") if before else f"{body} LAUNCH"
    assert read(f"int n = 20; {text}") == [20]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("int n = 10; auto f = [&]() { LAUNCH }; n = 20; f();", [20]),
        ("int n = 20; auto f = [=]() { LAUNCH }; n = 10; f();", [20]),
        ("int n = 20; auto f = [n] { LAUNCH }; n = 10; f();", [20]),
        ("int n = 20; auto f = [&]() { LAUNCH }; f();", [20]),
        ("int n = 10; auto f = [&]() { LAUNCH }; f(); n = 20; f();", [None]),
        ("auto f = [&](int n) { LAUNCH }; f(20);", [20]),
        ("auto f = [&](int n) { LAUNCH }; f(20); f(30);", [20]),  # the first call is assumed
        ("int n = 20; [&]() { LAUNCH }();", [20]),
        ("int n = 20; RUN(k, 1, p, n)", [20]),
        ("int n = 20; TIMED(p, n);", [20]),
        ("int n = 20; void (*g)(int *, int) = k; g<<<1, 32>>>(p, n);", [20]),
        ("int n = 20; void (*g)(int *, int); g = &k; g<<<1, 32>>>(p, n);", [20]),
        ("int n = 20; auto g = k; g<<<1, 32>>>(p, n);", [20]),
        ("int n = 20; through_pointer(k, p, n);", [20]),
    ],
)
def test_launches_in_lambdas_and_macros_and_through_pointers(body, values):
    assert read(body) == values


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);", 132),
        ("CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMaxThreadsPerBlock, device));", 1024),
        ("cudaDeviceGetAttribute(&n, cudaDevAttrClockRate, 0);", None),
        ("if (argc > 1) cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0);", 7),
        ("if (rand()) cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0);", None),
    ],
)
def test_attributes_of_the_device(call, value):
    assert read(f"int n = 7; {call} LAUNCH") == [value]


KERNEL = "__global__ void k(int *p, int n) { p[threadIdx.x] = n; }\n"


def test_the_only_kernel_that_host_code_launches_is_meant(tmp_path):
    helper = "__global__ void helper(int *p) { *p = 1; }\n"
    main = "int main() { int *p; cudaMalloc(&p, 128); k<<<1, 32>>>(p, 5); MORE }"
    (tmp_path / "my.cu").write_text(KERNEL + helper + main.replace("MORE", ""))
    assert simulate(tmp_path / "my.cu", predict=False).cubin.name == "k"
    (tmp_path / "my.cu").write_text(KERNEL + helper + main.replace("MORE", "helper<<<1, 1>>>(p);"))
    with pytest.raises(InputError, match=r"holds 2 kernels: say which one"):
        simulate(tmp_path / "my.cu", predict=False)


def test_a_launch_through_a_pointer_that_is_not_followed_is_named(tmp_path):
    main = "int main() { int *p; void (*t[2])(int *, int) = {k, k}; t[1]<<<1, 32>>>(p, 5); }"
    (tmp_path / "my.cu").write_text(KERNEL + main)
    with pytest.raises(InputError, match=r"line 2 launches t\[1\], a pointer that is not followed"):
        simulate(tmp_path / "my.cu", "k", predict=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "__global__ void k(int *p) {\n  cudaStream_t s;\n"
            "  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n  k<<<1, 1, 0, s>>>(p);\n}",
            "line 4: a kernel launches another one",
        ),
        (
            "texture<float> image;\n__global__ void k(float *p) {\n"
            "  float a = tex1Dfetch(image, 1), b = tex1Dfetch(image, 2);\n  *p = a + b;\n}",
            "line 1: CUDA 12 has no texture references",
        ),
        (
            '#include "cub/cub/cub.cuh"\n'
            "__global__ void k(int *p) {\n  *p = __shfl_down(*p, 1);\n}",
            "line 3: CUDA has no __shfl_down any more: take __shfl_down_sync",
        ),
        (
            '#include "cub/cub/cub.cuh"\n__global__ void k(int *p) { *p = cub::Sum()(1, 2); }',
            "line 1: there is no cub/cub/cub.cuh beside the source",
        ),
    ],
)
def test_what_is_not_supported_is_named_in_place_of_what_is_undefined(tmp_path, text, message):
    (tmp_path / "my.cu").write_text(text + "\nint main() { k<<<1, 1>>>(nullptr); }")
    with pytest.raises(CompileError, match=message):
        simulate(tmp_path / "my.cu", predict=False)
