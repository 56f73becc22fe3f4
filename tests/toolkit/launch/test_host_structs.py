"""Structs that host code passes to kernels by value, and the template arguments that they imply."""

import numpy as np
import pytest

from analysis.errors import InputError
from tests.refusals import refusal
from toolkit import simulate
from toolkit.launch.host_code import launches_of
from toolkit.launch.host_unit import host_unit
from toolkit.launch.source_launches import SourceLaunches

HEAD = """
struct Add { __device__ float operator()(float a, float b) const { return a + b; } };
struct Scale {
    float by; short n, m;
    __device__ float operator()(float a, float b) const { return a * by + b * (n - m); }
};
struct Made { float by; Made(float x) : by(2 * x) {} };
struct Boxed { float by[2]; };
template <typename T, typename Op> __global__ void k(T *x, Op op) {
    x[threadIdx.x] = op(x[threadIdx.x], x[threadIdx.x + 32]);
}
void touch(Scale &s);
int main() {
    float *x;
    cudaMalloc(&x, 64 * sizeof(float));
    Scale s = {2.0f, 5, 2};
    Scale later;
    Scale touched = {1.0f, 1, 1};
    touch(touched);
    Scale written = {1.0f, 1, 1};
    written.by = 4;
    k<<<1, 32>>>(x, OPERATION);
}
"""


def argument_of(operation):
    (launch,) = launches_of(host_unit(HEAD.replace("OPERATION", operation), "a.cu", None))
    return launch.name, launch.arguments[1].struct


def argument_of_struct(struct, made="New{4}"):
    """The value of a `New` where `struct` declares it; `made` is one without an initial value."""
    text = f"{struct}\n{HEAD.replace('OPERATION', made)}"
    if made == "made":
        text = text.replace("    Scale later;", "    New made;")
    (launch,) = launches_of(host_unit(text, "a.cu", None))
    return launch.arguments[1].struct


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [
        ("Add()", "k<float, Add>", (0,)),
        ("Add{}", "k<float, Add>", (0,)),
        ("s", "k<float, Scale>", (2, 5, 2)),
        ("Scale{3.5f, 70000 - 69999}", "k<float, Scale>", (3.5, 1, 0)),
        ("Scale()", "k<float, Scale>", (0, 0, 0)),
    ],
)
def test_a_struct_by_value_names_the_kernel_and_is_its_argument(operation, name, value):
    found, struct = argument_of(operation)
    assert found == name
    assert struct.item() == value


@pytest.mark.parametrize("operation", ["later", "touched", "written", "Made(1)", "Boxed{1, 2}"])
def test_what_may_be_another_value_at_run_time_is_unknown(operation):
    assert argument_of(operation)[1] is None


@pytest.mark.parametrize(
    ("struct", "made", "value"),
    [
        ("struct New { float by = 2; int n = 3; };", "New()", (2, 3)),
        ("struct New { float by = 2; int n = 3; };", "New{}", (2, 3)),
        ("struct New { float by = 2; int n = 3; };", "New{4}", (4, 3)),
        ("struct New { float by = 2; int n = 3; };", "made", (2, 3)),
        ("struct New { float by, to{3}; };", "New{4}", (4, 3)),
        ("struct New { float by, to = 3, at; };", "New{4}", (4, 3, 0)),
        ("constexpr int N = 8; struct New { float by; int n = 2 * N - 1; };", "New{4}", (4, 15)),
    ],
)
def test_constant_default_values_are_those_of_fields_that_are_not_given(struct, made, value):
    assert argument_of_struct(struct, made).item() == value


@pytest.mark.parametrize(
    ("struct", "made"),
    [
        ("struct New { float by = 2; int n; };", "made"),  # n has no value
        ("int drawn(); struct New { float by; int n = drawn(); };", "New{4}"),
        ("int N; struct New { float by; int n = N; };", "New{4}"),
        ("constexpr int by = 9; struct New { int by; int n = by; };", "New{4}"),  # the field's, 4
        ("constexpr int N = 9; struct New { enum { N = 7 }; int n = N; };", "New()"),
        ("struct New { int n = {}; };", "New()"),
        ("struct New { int n = 1; int of[2] = {1, 2}; };", "New()"),
    ],
)
def test_other_default_values_are_unknown(struct, made):
    assert argument_of_struct(struct, made) is None


@pytest.mark.parametrize(
    "struct",
    [
        "struct alignas(16) New { float by; };",
        "struct __align__(16) New { float by; };",
        "struct __attribute__((packed)) New { char of; float by; };",
        "struct New { float by; } __attribute__((aligned(16)));",
        "struct New { float by; } PACKED;",
        "struct New { alignas(16) float by; };",
        "typedef struct { float by; } __align__(16) New;",
        "typedef __align__(16) struct { float by; } New;",
        "#pragma pack(push, 1)\nstruct New { float by; };\n#pragma pack(pop)",
        '_Pragma("pack(1)")\nstruct New { float by; };',
    ],
)
def test_structs_whose_layout_is_changed_are_unknown(struct):
    assert argument_of_struct(struct) is None


def test_what_is_aligned_beside_a_struct_does_not_change_it():
    beside = "struct alignas(16) Other { float to; };"
    assert argument_of_struct(f"{beside} struct New {{ float by; }}; {beside}").item() == (4,)


@pytest.mark.parametrize(
    ("operation", "result"), [("Add()", lambda a, b: a + b), ("s", lambda a, b: a * 2 + b * 3)]
)
def test_it_is_passed_as_the_compiler_lays_it_out(operation, result):
    x = np.arange(64, dtype=np.float32)
    found = simulate(HEAD.replace("OPERATION", operation), arguments={"x": x})
    np.testing.assert_array_equal(found.outputs[0][:32], result(x[:32], x[32:]))


def test_the_line_of_a_launch_names_its_kernel():
    launch = "    k<<<1, 32>>>(x, OPERATION);\n"
    text = HEAD.replace(launch, launch.replace("OPERATION", "s") + launch)
    known = SourceLaunches(text.replace("OPERATION", "Add()"), "a.cu")
    assert known.kernels == ["k<float, Scale>", "k<float, Add>"]
    lines = [one.line for one in known.launches]
    assert [known.chosen(None, line) for line in lines] == known.kernels
    assert "say which one" in refusal(InputError, known.chosen, None)


def test_a_template_that_nobody_instantiates_is_refused_with_its_parameters():
    known = SourceLaunches(
        "template <class T, int N> __global__ void k(T *x) { x[0] = N; }", "a.cu"
    )
    said = refusal(InputError, known.chosen, None)
    assert said == (
        "a.cu holds no kernel, only k<...>: give -k 'k<T, N>' with a type or number for T and N"
    )


def test_a_launch_whose_template_arguments_are_not_known_is_named():
    known = SourceLaunches(
        """template <class T, int N> __global__ void k(T *x) { x[0] = N; }
        int main(int argc, char **argv) {
            k<float, LATER + 1><<<1, 32>>>(0);
        }""",
        "a.cu",
    )
    for kernel in (None, "1", "k"):
        assert refusal(InputError, known.chosen, kernel) == (
            "a.cu: line 3 launches k with template arguments that could not be read: "
            "give -k 'k<T, N>' with a type or number for T and N"
        )


def test_a_macro_that_launches_kernels_is_named():
    text = """__global__ void k(float *x) { x[0] = 1; }
        template <int N> __global__ void t(float *x) { x[0] = N; }
        __global__ void other(float *x) { x[0] = 1; }
        #define LAUNCH(name) name##_kernel<<<1, 32>>>(0)
        #define RUN t<4><<<1, 32>>>(0)
        """
    in_macro = "(the macro LAUNCH launches kernels, but not in a way that is read)"
    known = SourceLaunches(text, "a.cu")
    assert known.proposed("k", given={}).why_open() == f"no host code launches k {in_macro}"
    assert refusal(InputError, known.chosen, "t").startswith(
        f"t is a template that a.cu never instantiates {in_macro}: give -k 't<N>'"
    )
    plain = SourceLaunches(text.replace("name##_kernel", "name"), "a.cu")
    assert plain.proposed("k", given={}).why_open() == "no host code launches k"
    assert "(the macro RUN launches" in refusal(InputError, plain.chosen, "t")


@pytest.mark.parametrize(
    "value", ["std::bool_constant<true>{}", "std::integral_constant<int, 4>()", "std::true_type{}"]
)
def test_a_constant_that_is_passed_as_a_type_is_an_empty_struct(value):
    kind = value.rstrip("(){}")
    text = f"""__global__ void k(float *x, {kind} by) {{ x[0] = by.value; }}
        int main() {{ float *x; cudaMalloc(&x, 4); k<<<1, 1>>>(x, {value}); }}"""
    proposed = SourceLaunches(text, "a.cu").proposed("k", given={})
    assert proposed.arguments[1].dtype.itemsize == 1
    assert not proposed.is_open([])


def test_numbers_are_as_short_as_they_are_exact():
    text = """__global__ void k(float *x, float rate, double eps, bool on) { x[0] = rate; }
        int main() { float *x; cudaMalloc(&x, 4); k<<<1, 1>>>(x, 1e-3, 1e-8, true); }"""
    proposed = SourceLaunches(text, "a.cu").proposed("k", given={})
    assert proposed.facts[-3:] == ("rate = 0.001", "eps = 1e-08", "on = 1")
