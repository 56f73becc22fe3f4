"""Launches in host code: what is read of them, and what may be another value at run time."""

import pytest

from analysis.devices import find_device
from toolkit.launch.host_code import HostCode, launches_of
from toolkit.launch.host_numbers import Number
from toolkit.launch.host_unit import host_unit
from toolkit.launch.host_values import Evaluator

KERNEL = "__global__ void k(float *x, int n) {}\n"


def launches(text, defines=None, given=None, folder=None):
    return launches_of(host_unit(text, "my.cu", folder, defines or {}), given)


def read(body, before="", **how):
    """The only launch of a `main` with this body."""
    (found,) = launches(f"{KERNEL}{before}\nint main(int argc, char **argv) {{ {body} }}", **how)
    return found


def grid(value, before="", setup="", **how):
    """The first extent of `k<<<value, 1>>>`, None if it is not known."""
    extent = read(f"{setup} k<<<{value}, 1>>>(p, 0);", before, **how).grid
    return extent and extent[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7),
        ("0x10", 16),
        ("1 << 10", 1024),
        ("(1000 + 255) / 256", 4),
        ("1000 % 256", 232),
        ("-7 / 2 + 10", 7),  # toward zero
        ("sizeof(float4) * 2", 32),
        ("sizeof(double)", 8),
        ("8 * powf(2, 3)", 64),
        ("ceil(log2(1000))", 10),
        ("logf(expf(3)) + 0.5", 3),
        ("pow(-8.0, 0.5)", None),
        ("pow(0.0, -1)", None),
        ("exp(1e9)", None),
        ("log(-1.0)", None),
        ("ceil(1000 / 256)", 3),  # the integers divide first
        ("ceil(1000.0 / 256)", 4),
        ("(int)ceil((float)1000 / 256)", 4),
        ("static_cast<int>(2.9f)", 2),
        ("std::min(5, 3) + std::max(1, 2)", 5),
        ("1 > 2 ? 8 : 9", 9),
        ("true ? 3 : argc", 3),
        ("dim3(4, 5)", 4),
        ("65536 * 65536", None),  # overflows an int
        ("65536L * 65536 / 65536", 65536),
        ("0", None),  # no launch has no blocks
        ("atoi(argv[1])", None),
        ("rand()", None),
        ("undeclared", None),
        ("1 / 0", None),
    ],
)
def test_a_constant_is_evaluated_as_in_c(value, expected):
    assert grid(value) == expected


@pytest.mark.parametrize(
    ("before", "value", "expected"),
    [
        ("#define N 1024", "N / 2", 512),
        ("#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))", "CEIL_DIV(1000, 256)", 4),
        ("const int n = 12;", "n", 12),
        ("constexpr unsigned n = 3, m = n * 2;", "m", 6),
        ("enum { A = 4, B = A + 1 };", "B", 5),
        ("int div_up(int a, int b) { return (a + b - 1) / b; }", "div_up(9, 4)", 3),
        ("int up(int a) { int b = a % 4; return b ? a + 4 - b : a; }", "up(9)", 12),
        ("typedef float Real;", "sizeof(Real)", 4),
        ("using Real = double;", "sizeof(Real)", 8),
        ("struct S { float a; double b; char c[3]; };", "sizeof(S)", 24),
        ("struct alignas(32) S { float a; };", "sizeof(S)", None),
        ("#pragma pack(push, 1)\nstruct S { char a; double b; };", "sizeof(S)", None),
        ("struct S { char a; double packed; };", "sizeof(S)", 16),
        ("#ifdef BIG\n#define N 8\n#else\n#define N 2\n#endif", "N", 2),
        (
            "#if defined(BIG) || !defined(__CUDACC__)\n#define N 8\n#else\n#define N 2\n#endif",
            "N",
            2,
        ),
        ("#if CUDART_VERSION > 9000\n#define N 8\n#else\n#define N 2\n#endif", "N", None),
        ("int n = 5; void change() { n = 6; }", "n", None),
        ("#if CUDART_VERSION > 9\nconst int n = 1;\n#else\nconst int n = 2;\n#endif", "n", None),
    ],
)
def test_names_stand_for_values(before, value, expected):
    assert grid(value, before) == expected


STRUCTS = """
struct Tile { static constexpr int rows = 4, columns = 8, all = rows * columns; int free = 9; };
struct Old { static const unsigned n = 3; enum { twice = 2 * n }; };
template <typename T, int K> struct alignas(16) Packed {
    static constexpr const int size = K * sizeof(int4) / sizeof(T);
    T values[size];
};
using Halves = Packed<__half, 2>;
template <typename T> struct Traits { static constexpr int n = 1; };
template <> struct Traits<float> { static constexpr int n = 2; };
namespace sizes { constexpr int n = 6; }
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Tile::rows", 4),
        ("Tile::all", 32),
        ("Tile::free", None),  # each object has its own
        ("Tile::none", None),
        ("Old::n + Old::twice", 9),
        ("Halves::size", 16),
        ("Packed<double, 1>::size", 2),
        ("Traits<float>::n", 2),
        ("Traits<int>::n", None),  # the general one, but specializations are not told apart
        ("sizes::n", 6),
        ("elsewhere::rows", None),
    ],
)
def test_a_constant_of_a_struct_is_not_a_variable_of_that_name(value, expected):
    assert grid(value, STRUCTS, "int rows = 7, size = 7, none = 7;") == expected


def test_a_template_argument_tells_a_constant_of_its_struct():
    text = f"""{KERNEL}{STRUCTS}
        template <typename T> void run() {{ k<<<Packed<T, 1>::size, 1>>>(p, 0); }}
        int main() {{ run<short>(); }}"""
    (found,) = launches(text)
    assert found.grid == (8, 1, 1)


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ("int n = 5;", 5),
        ("int n; n = 5;", 5),
        ("int n = 5; n = 6;", 6),
        ("int n = 5; if (argc > 1) n = atoi(argv[1]);", None),
        ("int n = 5; if (argc > 1) { n = 7; }", None),
        ("int n = 5; n += 1;", None),
        ('int n = 5; scanf("%d", &n);', None),
        ("int n = 5; std::cin >> n;", None),
        ("int n = 5; parse(argc, argv, n);", None),  # it may take a reference
        ("const int n = 5; parse(argc, argv, n);", 5),  # not even by reference
        ("constexpr int n = 5; parse(n);", 5),
        ("int n = 5; const int &m = n; parse(n);", None),
        ('int n = 5; cudnnSetTensor4dDescriptor(d, f, t, n, 1, 1, 1); parse("n");', 5),
        ('int n = 5; printf("%d", n);', 5),
        ("int n = 2.9;", 2),
        ("char n = 300;", None),
        ("auto n = 5;", 5),
        ("int m = 5, n = m * 2;", 10),
        ("int n = 5; { int n = 6; }", 5),
        ("int n = 0; for (int i = 0; i < 3; i++) n++;", None),
        ("for (int n = 1; n < 9; n *= 2)", None),
        ("int n = 5; while (argc--) { n = 6;", 6),
    ],
)
def test_a_variable_that_may_change_is_unknown(setup, expected):
    end = " }" if setup.count("{") > setup.count("}") else ""
    text = f"{KERNEL} int main(int argc, char **argv) {{ {setup} k<<<n, 1>>>(p, 0);{end} }}"
    (found,) = launches(text)
    assert (found.grid and found.grid[0]) == expected


def test_a_change_after_the_launch_does_not_matter_unless_a_loop_repeats_it():
    assert read("int n = 5; k<<<n, 1>>>(p, 0); n = 6;").grid == (5, 1, 1)
    again = "int n = 5; for (int i = 0; i < 2; i++) { k<<<n, 1>>>(p, 0); n = 6; }"
    assert read(again).grid is None


NO_ARGUMENTS = ("a run without arguments (argc = 1)",)
FIRST_PASS = ("the first pass of the loop in line 2",)


@pytest.mark.parametrize(
    ("setup", "expected", "assumed"),
    [
        ("int n = argc > 1 ? atoi(argv[1]) : 7;", 7, NO_ARGUMENTS),
        ("int n = 5; if (argc > 1) n = atoi(argv[1]);", 5, NO_ARGUMENTS),
        ("int n = 5; if (argc < 2) { n = 6; } else { n = atoi(argv[1]); }", 6, NO_ARGUMENTS),
        ("int n = atoi(argv[1]);", None, ()),
        ("int n = 5; for (int i = 1; i < argc; i++) n = atoi(argv[i]);", 5, NO_ARGUMENTS),
        (
            'int n = 5, o; while ((o = getopt(argc, argv, "n:")) != -1) { n = atoi(optarg); }',
            5,
            NO_ARGUMENTS,
        ),
        ("for (int n = 1; n < 9; n *= 2)", 1, FIRST_PASS),
        ("for (int i = 0; i < 4; i++) { int n = 3 + i;", 3, FIRST_PASS),
        ("int n = 64; while (n > 1) {", 64, FIRST_PASS),
        ("int n = 5; for (int i = 0; i < 3; i++) n++;", None, ()),  # its passes come before
        ("int n = 5; if (argc > 1) n = atoi(argv[1]); else n = 6;", 6, NO_ARGUMENTS),
        # a later pass of a loop before the launch writes 7
        ("int n = 5; for (int i = 0; i < 9; i++) { if (i == 4) n = 7; }", None, ()),
        ("int n = 5; for (int i = 0; i < 9; i++) for (int j = 0; j < i; j++) n = 7;", None, ()),
        # and so does one of the loop around it, but not the first
        ("int n = 5; for (int i = 0; i < 9; i++) { if (i == 4) n = 7;", 5, FIRST_PASS),
        ('int n = 5; scanf("%d", &n);', None, ()),
    ],
)
def test_a_run_without_arguments_and_first_passes_may_be_assumed(setup, expected, assumed):
    is_open = setup.count("{") > setup.count("}")
    end = " n /= 2; }" if is_open else ""
    text = f"{KERNEL}int main(int argc, char **argv) {{ {setup} k<<<n, 1>>>(p, 0);{end} }}"
    unit = host_unit(text, "my.cu", None, {})
    (found,) = HostCode(unit).launches(assuming=True)
    assert (found.grid and found.grid[0]) == expected
    if expected is not None:
        assert found.assumed == assumed


def assumed_of(text, device=None):
    """The first extent of the grid with assumptions, and these."""
    unit = host_unit(f"{KERNEL}{text}", "my.cu", None, {})
    (strictly,) = HostCode(unit, device).launches()
    assert strictly.grid is None
    (found,) = HostCode(unit, device).launches(assuming=True)
    return found.grid and found.grid[0], found.assumed


def test_properties_are_those_of_the_device():
    device = find_device("a100-40gb")
    text = """
        int main() {
            cudaDeviceProp prop;
            cudaGetDeviceProperties(&prop, 0);
            k<<<prop.multiProcessorCount * prop.maxThreadsPerMultiProcessor / 1024, 1024>>>(p, 0);
        }"""
    known = ("maxThreadsPerMultiProcessor = 2048", "multiProcessorCount = 108")
    assert assumed_of(text, device) == (216, known)
    assert assumed_of(text)[0] is None
    assert (
        assumed_of(text.replace("maxThreadsPerMulti", "unknownThreadsPerMulti"), device)[0] is None
    )


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("int n = 0; void start() { n = 6; }", 6),
        ("int n; void start() { n = 6; }", 6),
        ("int n = 5; void start() { n = 6; }", None),  # two values
        ("int n; void start() { n = 6; } void again() { n = 7; }", None),
        ("int n; void start(int m) { n = m; }", None),
        ("int n; void start() { if (rand()) n = 6; }", None),
        ("int n; void start() { for (int i = 0; i < 3; i++) n = 6; }", None),
        ("int n; void start() { n += 6; }", None),
    ],
)
def test_the_only_write_of_a_global_variable_may_be_assumed(before, expected):
    found, assumed = assumed_of(f"\n{before} int main() {{ start(); k<<<n, 1>>>(p, 0); }}")
    assert found == expected
    if expected:
        assert assumed == ("the value that n gets in line 3 of my.cu",)


def test_a_header_may_define_what_reads_the_command_line():
    flag = "bool checkCmdLineFlag(int n, const char **v, const char *s) { while (n--) ; return 1; }"
    launch = 'int n = 4; if (checkCmdLineFlag(argc, argv, "n")) n = 8; k<<<n, 1>>>(p, 0);'
    found, assumed = assumed_of(f"{flag} int main(int argc, const char **argv) {{ {launch} }}")
    assert (found, assumed) == (4, NO_ARGUMENTS)


def test_each_condition_is_evaluated_once(monkeypatch):
    tested = []
    number = Evaluator.number

    def counted(evaluator, node, *others):
        tested.append(node.type)
        return number(evaluator, node, *others)

    monkeypatch.setattr(Evaluator, "number", counted)
    found = read(f"int n = 3; {'if (n > 5) n = 5; ' * 30} k<<<n, 1>>>(p, 0);")
    assert found.grid == (3, 1, 1)
    assert tested.count("binary_expression") == 30  # n > 5


def test_signs_belong_to_literals():
    assert read("k<<<1, 1>>>(p, -2);").arguments[1].value == Number(-2, "i32")
    (found,) = launches(
        "__global__ void k(float x) {} int main() { k<<<1, 1>>>(-2.5f); k<<<1, 1>>>(+1e3); }"
    )[:1]
    assert found.arguments[0].value == Number(-2.5, "f32")


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ("dim3 g(4, 5, 6);", (4, 5, 6)),
        ("dim3 g = dim3(4, 5);", (4, 5, 1)),
        ("dim3 g{4, 5};", (4, 5, 1)),
        ("int a = 4, b = 5; dim3 g(a, b);", (4, 5, 1)),  # which parses as a function
        ("dim3 g(4); g.y = 7;", (4, 7, 1)),
        ("dim3 g; g.x = 9;", (9, 1, 1)),
        ("dim3 b(8, 4); dim3 g(b.x * 2, b.y);", (16, 4, 1)),
        ("dim3 g(4); if (argc) g.y = 7;", None),
        ("dim3 g(argc, 5);", None),
    ],
)
def test_a_dim3_is_read_in_each_of_its_forms(setup, expected):
    assert read(f"{setup} k<<<g, 1>>>(p, 0);").grid == expected


def test_macros_of_the_command_line_win():
    text = "#ifndef N\n#define N 4\n#endif"
    assert grid("N", text) == 4
    assert grid("N", text, defines={"N": "9"}) == 9


def test_headers_beside_the_source_are_read(tmp_path):
    (tmp_path / "sizes.h").write_text("#pragma once\nconst int N = 48;\n", encoding="utf-8")
    assert grid("N", '#include "sizes.h"', folder=tmp_path) == 48


@pytest.mark.parametrize(
    ("setup", "argument", "expected"),
    [
        ("float *x; cudaMalloc(&x, 4 * sizeof(float));", "x", 16),
        ("float *x; CHECK(cudaMalloc((void **)&x, 16));", "x", 16),
        ("float *x; cudaMallocManaged(&x, 16);", "x", 16),
        ("float *x; cudaMalloc<float>(&x, 16);", "x", 16),
        ("size_t b = 16; float *x = NULL; cudaMalloc(&x, b);", "x", 16),
        ("thrust::device_vector<float> v(4);", "thrust::raw_pointer_cast(v.data())", 16),
        ("int n = 4; thrust::device_vector<float> v(n);", "v.data().get()", 16),
        ("thrust::device_vector<float> v(4, 1.f);", "thrust::raw_pointer_cast(&v[0])", 16),
        ("thrust::device_vector<float> v(4); v.resize(argc);", "v.data().get()", None),
        ("float *y, *x; cudaMalloc(&y, 16); x = y;", "x", 16),
        ("float *x[2]; for (int i = 0; i < 2; i++) cudaMalloc(&x[i], 16);", "x[1]", 16),
        ("struct S s; cudaMalloc(&s.x, 16);", "s.x", 16),
        ("float *x; cudaMalloc(&x, argc);", "x", None),
        ("float *x; if (argc) cudaMalloc(&x, 16); else cudaMalloc(&x, 32);", "x", None),
        ("float *x; cudaMalloc(&x, 16);", "x + 2", None),
        ("float *x = make();", "x", None),
    ],
)
def test_the_bytes_of_arrays_are_those_of_their_allocation(setup, argument, expected):
    assert read(f"{setup} k<<<1, 1>>>({argument}, 0);").arguments[0].bytes == expected


def test_an_allocation_in_a_function_of_its_own_is_followed():
    text = f"""{KERNEL}
        void allocate(float **where, int n) {{ cudaMalloc(where, n * sizeof(float)); }}
        int main() {{ float *x; allocate(&x, 64); k<<<1, 1>>>(x, 64); }}"""
    (found,) = launches(text)
    assert found.arguments[0].bytes == 256


def test_values_are_followed_into_the_function_that_launches():
    text = f"""{KERNEL}
        template <int B> void run(int n, float *x) {{ k<<<n / B, B>>>(x, n); }}
        int main() {{ float *x; cudaMalloc(&x, 4096); run<256>(1024, x); }}"""
    (found,) = launches(text)
    assert (found.grid, found.block) == ((4, 1, 1), (256, 1, 1))
    assert [one.value or one.bytes for one in found.arguments] == [4096, Number(1024, "i32")]


def test_each_call_of_the_function_that_launches_is_a_launch():
    text = f"""{KERNEL} void run(int n) {{ k<<<n, 1>>>(p, n); }}
        int main(int argc, char **argv) {{ run(atoi(argv[1])); run(6); }}"""
    assert [one.grid for one in launches(text)] == [None, (6, 1, 1)]


@pytest.mark.parametrize(
    ("kernel", "launch", "name"),
    [
        ("template <int N> __global__ void t(float *x) {}", "t<8 * 2>", "t<16>"),
        ("template <int N, bool B> __global__ void t(float *x) {}", "t<4, true>", "t<4, true>"),
        ("template <typename T> __global__ void t(T *x) {}", "t", "t<float>"),
        ("template <typename T> __global__ void t(T *x) {}", "t<Real>", "t<float>"),
        ("template <int N = 3> __global__ void t(float *x) {}", "t", "t<>"),
        ("template <int N> __global__ void t(float *x) {}", "t<argc>", None),
        (
            "template <int M, // rows, 8\n int N = 4 // 1, 4\n> __global__ void t(float *x) {}",
            "t<8 /* rows */, 2>",
            "t<8, 2>",
        ),
        ("enum W { UP = 0, AT }; template <W w> __global__ void t(float *x) {}", "t<UP>", "t<UP>"),
        ("namespace ns { __global__ void t(float *x) {} }", "ns::t", "ns::t"),
    ],
)
def test_the_instantiation_is_that_of_the_launch(kernel, launch, name):
    text = f"""typedef float Real;
        {kernel}
        int main(int argc, char **argv) {{ float *x; cudaMalloc(&x, 4); {launch}<<<1, 1>>>(x); }}"""
    (found,) = launches(text)
    assert found.name == name


@pytest.mark.parametrize("value", ["std::bool_constant<true>{}", "std::bool_constant<true>()"])
def test_a_constant_that_is_passed_as_a_type_names_the_instantiation(value):
    text = f"""template <typename T, bool B>
        __global__ void k(T *x, std::bool_constant<B>) {{ x[0] = B; }}
        int main() {{ double *x; cudaMalloc(&x, 8); k<<<1, 1>>>(x, {value}); }}"""
    (found,) = launches(text)
    assert found.name == "k<double, true>"


def test_the_types_of_parameters_are_plain():
    text = """#define DATA double
        template <typename T> __global__ void t(const T *x, DATA *y, unsigned long n) {}
        int main() { float *x; t<<<1, 1>>>(x, y, 3); }"""
    (found,) = launches(text)
    assert [one.dtype for one in found.parameters] == ["float32", "float64", "uint64"]


def test_scalars_that_the_user_gives_are_those_of_host_code():
    text = f"""{KERNEL}
        int main(int argc, char **argv) {{
            int n = atoi(argv[1]);
            float *x;
            cudaMalloc(&x, n * sizeof(float));
            k<<<(n + 255) / 256, 256>>>(x, n);
        }}"""
    (found,) = launches(text)
    assert (found.grid, found.unknown) == (None, 3)
    (found,) = launches(text, given={"n": Number(1000, "i32")})
    assert (found.grid, found.arguments[0].bytes, found.unknown) == ((4, 1, 1), 4000, 0)


@pytest.mark.parametrize(
    ("setup", "written", "block", "grid"),
    [
        ("int b = atoi(argv[1]);", "(1000 + b - 1) / b, b", (64, 1, 1), 16),
        ("int b = atoi(argv[1]); dim3 d(b);", "1024 / b, d", (64, 1, 1), 16),
        ("dim3 d = dims(); int g = 1024 / d.x;", "g, d", (64, 2, 1), 16),
        ("int b = atoi(argv[1]);", "1024 / b, dim3(b, 2)", (64, 2, 1), 16),
        ("int b = 128;", "1024 / b, b", (64, 1, 1), 16),  # what is given wins
        ("int b = atoi(argv[1]);", "1024 / b, 2 * b", (64, 1, 1), None),
        ("int b = atoi(argv[1]);", "1024 / b, b", (8, 8, 1), None),  # b is no number of threads
        ("int b = 16; dim3 d(b, b);", "1024 / b, d", (32, 32, 1), 32),
        ("int b = 16; dim3 d(b, b);", "1024 / b, d", (256, 1, 1), 64),  # it says nothing of b
        ("int b = atoi(argv[1]);", "1024 / b, dim3(b, b)", (256, 1, 1), None),
        ("int b = 16; dim3 d(b, b);", "1024 / d.x, d", (256, 1, 1), 4),
    ],
)
def test_a_given_block_tells_what_follows_from_it(setup, written, block, grid):
    text = f"{KERNEL}int main(int argc, char **argv) {{ {setup} k<<<{written}>>>(p, 1); }}"
    (found,) = HostCode(host_unit(text, "my.cu", None, {})).launches(block=block)
    assert found.grid == (grid and (grid, 1, 1))


def test_a_variable_that_is_given_two_values_has_neither():
    text = """__global__ void k(float *x, int rows, int columns) {}
        int main(int argc, char **argv) {
            int n = atoi(argv[1]);
            float *x;
            cudaMalloc(&x, 4 * n * n);
            k<<<n, 32>>>(x, n, n);
        }"""
    two, three = Number(2, "i32"), Number(3, "i32")
    (found,) = launches(text, given={"rows": two, "columns": three})
    assert (found.grid, found.arguments[0].bytes) == (None, None)
    (found,) = launches(text, given={"rows": two, "columns": two})
    assert (found.grid, found.arguments[0].bytes) == ((2, 1, 1), 16)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("pow(2, 10)", 1024),
        ("pow(10, 400)", None),
        ("pow(-8.0, 0.5)", None),
        ("pow(0.0, -1)", None),
        ("(float)1e300 > 1 ? 1 : 2", None),
    ],
)
def test_what_is_no_finite_number_is_not_known(value, expected):
    (found,) = launches(f"{KERNEL}int main() {{ k<<<1, 32>>>(p, {value}); }}")
    known = found.arguments[1].value
    assert (known and known.value) == expected


@pytest.mark.parametrize(
    "written",
    [
        "dim3 b(32, // columns\n 8); k<<<1, b>>>(p, 1);",
        "int c = 32, r = 8; dim3 b(c /* columns */, r); k<<<1, b>>>(p, 1);",
        "dim3 b{32 /* columns */, 8}; k<<<1, b>>>(p, 1);",
        "dim3 b = dim3(32, /* rows */ 8); k<<<1, b>>>(p, 1);",
        "k<<<1, dim3(32, /* rows */ 8)>>>(p, 1);",
        "k<<<1, dim3((/* c */ 32), static_cast<int>(8 /* rows */))>>>(p, 1);",
        "k<<<1, dim3(width(), 8)>>>(p, 1);",
    ],
)
def test_comments_change_nothing(written):
    text = f"{KERNEL}int width() {{ return 32 /* columns */; }} int main() {{ {written} }}"
    (found,) = launches(text)
    assert found.block == (32, 8, 1)


def test_a_comment_before_an_argument_does_not_hide_that_a_reference_is_given():
    text = f"""{KERNEL}
        void set(int &n, int by) {{ n = by; }}
        int main() {{ int n = 32; set(/* out */ n, 64); k<<<1, n>>>(p, 1); }}"""
    (found,) = launches(text)
    assert found.block is None


def test_a_given_block_is_followed_to_the_callers():
    text = (
        f"{KERNEL}void run(float *p, int n, int b) {{ k<<<(n + b - 1) / b, b>>>(p, n); }}\n"
        "int main(int argc, char **argv) { run(p, 1000, atoi(argv[1])); }"
    )
    (found,) = HostCode(host_unit(text, "my.cu", None, {})).launches(block=(64, 1, 1))
    assert found.grid == (16, 1, 1)


@pytest.mark.parametrize(
    ("setup", "value", "expected"),
    [
        ("const int sizes[] = {32, 64};", "sizes[1]", 64),
        ("int sizes[2] = {32 /* a warp */, 64};", "sizes[0]", 32),
        ("int sizes[] = {32, 64};", "sizes[2]", None),
        ("int sizes[] = {32, 64}; sizes[0] = argc;", "sizes[0]", None),
        ("int sizes[] = {32, 64}; sizes[0]++;", "sizes[0]", None),
        ("int sizes[] = {32, 64}; read(&sizes[0]);", "sizes[0]", None),
        ("int sizes[] = {32, 64}; read(sizes);", "sizes[0]", None),
        ("int sizes[2] = {32, 64}; int n = sizeof(sizes) / sizeof(int);", "sizes[n - 1]", 64),
        ("int sizes[] = {argc, 64};", "sizes[0]", None),
        ("int *sizes = new int[2];", "sizes[0]", None),
    ],
)
def test_an_element_is_one_of_the_values_that_an_array_is_declared_with(setup, value, expected):
    assert grid(value, setup=setup) == expected


def test_dynamic_shared_memory_is_read():
    assert read("k<<<1, 64, 64 * sizeof(float)>>>(p, 0);").shared_bytes == 256
    assert read("k<<<1, 64>>>(p, 0);").shared_bytes == 0
    assert read("k<<<1, 64, argc>>>(p, 0);").shared_bytes is None


def test_code_that_directives_leave_out_launches_nothing():
    text = f"{KERNEL}\n#if 0\nvoid f() {{ k<<<1, 1>>>(p, 0); }}\n#endif\n"
    assert launches(text) == []


@pytest.mark.parametrize(
    ("macro", "value", "expected"),
    [
        ("N 3 + 2", "2 * N", None),  # 2 * 3 + 2 in C++
        ("N 3 + 2", "N * 2", None),
        ("N 3 + 2", "(N) * 2", 10),
        ("N 3 + 2", "10 + N", 15),
        ("N 3 + 2", "20 - N", None),  # 20 - 3 + 2
        ("N 3 + 2", "N - 1", 4),
        ("N 32 * 32", "N / 256", 4),
        ("N 32 * 32", "2 * N", 2048),
        ("N 32 * 32", "4096 / N", None),  # 4096 / 32 * 32
        ("N 1 << 4", "N * 2", None),
        ("N 1 << 4", "int(N)", 16),
        ("N 1.5 * 2", "(int)N", None),  # the cast takes 1.5 alone
        ("N 1 ? 5 : 6", "1 + N", None),
        ("N (3 + 2)", "2 * N", 10),
        ("N 7", "-N + 10", 3),
        ("N 1 + 7", "-N + 10", None),
        ("M 3 + 2\n#define N M", "2 * N", None),
        ("ADD(a, b) a + b", "2 * ADD(1, 2)", None),
        ("ADD(a, b) (a + b)", "2 * ADD(1, 2)", 6),
        ("DIV(a, b) (a + b - 1) / b", "DIV(100, 16)", 7),
        ("DIV(a, b) (a + b - 1) / b", "20 - DIV(100, 16)", 13),
    ],
)
def test_a_macro_that_an_operator_takes_apart_is_unknown(macro, value, expected):
    assert grid(value, before=f"#define {macro}\n") == expected


@pytest.mark.parametrize(
    "setup",
    [
        "int n = 5; Parser parser(&n);",
        "int n = 5; auto parser = new Parser(&n);",
        "int n = 5; std::thread worker(count, &n);",
        "int n = 10 SUFFIX;",  # what SUFFIX is, no header here says
    ],
)
def test_what_an_object_may_change_is_unknown(setup):
    assert grid("n", setup=setup) is None


A, B = "k<<<2, 1>>>(p, 0);", "k<<<3, 1>>>(p, 0);"


@pytest.mark.parametrize(
    ("body", "skipped"),
    [
        (f"bool fast = false; if (fast) {A} else {B}", [2]),
        (f"int v = 2; if (v == 1) {A} else if (v == 2) {B}", [2]),
        (f"int v = 2; if (argc > 1) v = 1; if (v == 1) {A} else {B}", []),
        (f"while (false) {A} {B}", [2]),
        (f"for (int i = 0; i < 9; i++) if (i == 4) {A} {B}", []),
        (f"int v = 2; switch (v) {{ case 1: {A} break; case 2: {B} break; }}", [2]),
        (f"int v = 2; switch (v) {{ case 1: {A} break; default: {{ {B} }} }}", [2]),
        (f"int v = 1; switch (v) {{ case 1: {A} case 2: {B} break; }}", []),  # runs on
        (f"int v = 1; switch (v) {{ case 1: {{ {A} return 0; }} case 2: {B} }}", [3]),
        (f"int v = 7; switch (v) {{ case 1: {A} }} {B}", [2]),
        (f"int v = 7; switch (v) {{ case 1: {A} break; default: case 2: {B} break; }}", [2]),
        (f"switch (argc) {{ case 1: {A} break; default: {B} }}", []),
    ],
)
def test_launches_in_branches_that_are_not_taken_are_skipped(body, skipped):
    found = launches(f"{KERNEL}int main(int argc, char **argv) {{ float *p; {body} }}")
    assert [one.grid[0] for one in found if one.is_skipped] == skipped


def test_conditions_of_a_function_are_those_of_its_caller():
    found = launches(
        f"{KERNEL}void run(float *p, int v) {{ if (v == 1) {A} else {B} }}"
        "int main() { float *p; run(p, 2); }"
    )
    assert [one.is_skipped for one in found] == [True, False]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("std::swap(p, q);", None),
        ("float *t = p; p = q; q = t;", None),
        ("", 4096),
        ("std::swap(p, r);", 4096),
    ],
)
def test_an_exchanged_pointer_has_a_size_if_the_arrays_are_alike(change, expected):
    body = "float *p, *q, *r; cudaMalloc(&p, 4096); cudaMalloc(&q, 8192); cudaMalloc(&r, 4096);"
    assert read(f"{body} {change} k<<<1, 1>>>(p, 0);").arguments[0].bytes == expected
