"""Launches that options leave open: host code completes them, or one line asks."""

import json
import shlex
from pathlib import Path

import pytest

from tests.toolkit.cli.commands import invoke, refused, write

pytestmark = pytest.mark.usefixtures("without_remedies")

SCALE = """#define BLOCK 64
template <typename T, int N> __global__ void scale(const T *x, T *y, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = x[i] * N;
}
#ifndef __CUDACC_RTC__
#include <cstdlib>
int main(int argc, char **argv) {
    const int n = SIZE;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    scale<float, 3><<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, n);
    scale<float, 3><<<1, BLOCK>>>(y, x, n);
}
#endif
"""
ADD = "__global__ void add(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }\n"
QUICK = "--no-remedies --no-lines"


@pytest.fixture(autouse=True)
def sources(folder):
    write("scale.cu", SCALE.replace("SIZE", "1000"))
    write("later.cu", SCALE.replace("SIZE", "atoi(argv[1])"))
    write("add.cu", ADD)
    write("two.cu", ADD + "template <int N> __global__ void fill(float *x) { x[N] = 1; }\n")


def lines(command):
    result = invoke(command)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_the_launch_of_host_code_is_taken_and_said():
    first, *rest = lines(f"simulate scale.cu {QUICK}")
    assert first.startswith("scale<float, 3>: ")
    assert "guessed" not in first
    notes = [one for one in rest if one.startswith("note: ")]
    assert notes[0] == (
        "note: launched as in line 13: grid 16, block 64, x f32[1000], y f32[1000], n = 1000"
    )
    assert notes[1] == "note: it is launched in line 14 too: --launch LINE takes another"


def test_another_launch_is_taken_by_its_line():
    assert "note: launched as in line 14: grid 1, block 64, " in "\n".join(
        lines(f"simulate scale.cu --launch 14 {QUICK}")
    )
    assert refused("simulate scale.cu --launch 3") == (
        "scale.cu: scale<float, 3> is not launched in line 3: choose one of 13, 14"
    )


def test_options_win_one_by_one():
    found = json.loads(invoke(f"simulate scale.cu -b 128 -a y=f32[2000] --json {QUICK}").stdout)
    assert (found["grid"], found["block"]) == ([16, 1, 1], [128, 1, 1])
    assert found["arguments"] == ["f32[1000]", "f32[2000]", "i32=1000"]


def test_a_record_repeats_what_was_launched():
    given = json.loads(invoke(f"simulate scale.cu --json --seed 1 {QUICK}").stdout)
    words = ["-k", given["kernel"], "-g", "16", "-b", "64"]
    words += [word for one in given["arguments"] for word in ("-a", one)]
    again = invoke(f"simulate scale.cu --json --seed 1 {QUICK} {shlex.join(words)}")
    assert json.loads(again.stdout)["counters"] == given["counters"]


def test_values_of_run_time_are_asked_for_in_one_line():
    assert refused("simulate later.cu") == (
        "later.cu: line 14 launches scale<float, 3> with values that are known only at run time: "
        "give int n: python -m toolkit simulate later.cu -a 'n=?'"
    )
    assert refused("simulate later.cu --limit 0 --max-instructions 9").endswith(
        "give int n: python -m toolkit simulate later.cu --max-instructions 9 --limit 0 -a 'n=?'"
    )


def test_the_command_that_is_named_has_every_option_that_was_given():
    given = (
        "--cooperative --heap 999 --compiler nvcc --blocks all --max-instructions 9 --seed 4 "
        "--left-out -d a100 --constants c.json --clock 1234.567891 --l2 warm --limit 0.125 "
        "--inner-lines --allow-out-of-bounds --set a=i32=1 -D N=2 --option -O3 --source-dir ."
    )
    assert refused(f"simulate later.cu {given}").endswith(
        f": python -m toolkit simulate later.cu {given} -a 'n=?'"
    )
    of_check = "--cooperative -d a100 --set a=i32=1"
    assert refused(f"check later.cu {of_check}").endswith(
        f": python -m toolkit check later.cu {of_check} -a 'n=?'"
    )


def test_a_grid_without_blocks_is_said():
    write("tiles.cu", SCALE.replace("SIZE", "1000").replace("(n + BLOCK - 1) / BLOCK", "n / BLOCK"))
    assert refused("simulate tiles.cu -a n=16 --launch 13") == (
        "tiles.cu: line 13 launches scale<float, 3> with grid 0,1,1 (sizes must be at least 1): "
        "give grid: python -m toolkit simulate tiles.cu --launch 13 -a n=16 -g ?"
    )


def test_a_run_without_arguments_is_assumed_where_it_says_all():
    write("default.cu", SCALE.replace("SIZE", "argc > 1 ? atoi(argv[1]) : 300"))
    found = lines(f"simulate default.cu {QUICK}")
    assert any("y f32[300], n = 300" in one for one in found)
    other = "options such as -b and -a NAME=VALUE take other values"
    assumed = f"note: assumed a run without arguments (argc = 1): {other}"
    assert assumed in found
    assert assumed not in lines(f"simulate default.cu -a n=500 {QUICK}")


def test_grid_and_sizes_follow_from_the_scalar_that_is_given():
    found = "\n".join(lines(f"simulate later.cu --launch 13 -a n=500 {QUICK}"))
    assert "grid 8, block 64, x f32[500], y f32[500]" in found


def test_without_host_code_the_missing_options_are_named():
    assert refused("simulate add.cu") == (
        "add.cu: no host code launches add: give grid, block and int n: "
        "python -m toolkit simulate add.cu -g ? -b ? -a 'n=?'"
    )


@pytest.mark.parametrize(
    ("parameter", "form", "filled"),
    [
        ("cudaTextureObject_t v", "tex:f32[?,?]", "tex:f32[2,2]"),
        ("cudaSurfaceObject_t v", "surf:f32[?,?]", "surf:f32[2,2]"),
        ("__half2 v", "struct:f16=?,f16=?", "struct:f16=1,f16=2"),
        ("__nv_bfloat162 v", "struct:bf16=?,bf16=?", "struct:bf16=1,bf16=2"),
        ("cuComplex v", "c64=?", "c64=2j"),
        ("const float3 v", "struct:f32=?,f32=?,f32=?", "struct:f32=1,f32=2,f32=3"),
        ("uint4 v", "struct:u32=?,u32=?,u32=?,u32=?", "struct:u32=1,u32=2,u32=3,u32=4"),
    ],
)
def test_the_form_of_a_parameter_by_value_is_shown_and_works(parameter, form, filled):
    headers = ("cuda_fp16.h", "cuda_bf16.h", "cuComplex.h")
    includes = "".join(f"#include <{one}>\n" for one in headers)
    write("value.cu", f"{includes}__global__ void k({parameter}, int *x) {{ x[threadIdx.x] = 1; }}")
    command = "simulate value.cu -g 1 -b 32"
    assert refused(command).endswith(f"give {parameter}: python -m toolkit {command} -a 'v={form}'")
    assert invoke(f"{command} {QUICK}", "-a", f"v={filled}").exit_code == 0


def test_an_array_of_arrays_is_an_array():
    write("rows.cu", "__global__ void k(float v[8][8]) { v[threadIdx.y][threadIdx.x] = 1; }")
    command = "simulate rows.cu -g 1 -b 8,8"
    assert invoke(f"{command} {QUICK}", "-a", "v=f32[64]").exit_code == 0
    assert "array of pointers" not in invoke("check rows.cu -g 1").output


@pytest.mark.parametrize("parameter", ["float **v", "const float *const *v", "float *v[]"])
def test_an_array_of_pointers_is_refused(parameter):
    write("rows.cu", f"__global__ void k({parameter}) {{ float x = v[0][threadIdx.x]; }}")
    assert refused("simulate rows.cu -g 1 -b 32") == (
        f"`{parameter}` is an array of pointers, which cannot be filled here: pass one array and "
        "compute where its parts begin"
    )


def test_a_launch_by_a_function_of_the_runtime_is_named():
    write(
        "grid.cu",
        "__global__ void k(float *x, int n) { x[n] = 1; }\nint main() { float *x; int n = 1;\n"
        "void *all[] = {&x, &n}; cudaLaunchCooperativeKernel((void *)k, 4, 64, all, 0, 0); }",
    )
    assert refused("simulate grid.cu").startswith(
        "grid.cu: no host code launches k by <<< >>> (line 3 calls cudaLaunchCooperativeKernel, "
        "which is not read): give grid, block and int n: "
    )


def test_a_static_member_is_no_field_of_a_struct():
    write(
        "held.cu",
        "struct Held { int n; static float *x; };\n__global__ void k(Held h, int *y) { *y = h.n; }",
    )
    assert "struct with pointers" not in invoke("simulate held.cu -g 1 -b 32").output


def test_a_struct_with_pointers_is_refused():
    write(
        "held.cu", "struct Held { float *x; int n; };\n__global__ void k(Held h) { h.x[h.n] = 1; }"
    )
    assert refused("simulate held.cu -g 1 -b 32") == (
        "`Held h` is a struct with pointers, which cannot be filled here: pass its fields as "
        "parameters"
    )


@pytest.mark.parametrize(
    ("before", "body"),
    [("", "[=] __device__(int i) { x[i] = 1; }"), ("auto f = [=](int i) { x[i] = 1; };", "f")],
)
def test_a_kernel_of_a_lambda_is_refused(before, body):
    write(
        "each.cu",
        "template <class F> __global__ void each(F f) { f(threadIdx.x); }\n"
        f"int main() {{ float *x; cudaMalloc(&x, 128); {before} each<<<1, 32>>>({body}); }}",
    )
    assert refused("simulate each.cu") == (
        "each.cu: line 2 gives each a lambda, whose type has no name: write what it does into the "
        "kernel, with plain parameters"
    )


CHOICE = """__global__ void a(float *x) { x[threadIdx.x] = 1; }
__global__ void b(float *x) { x[threadIdx.x] = 2; }
int main() {
    float *x;
    cudaMalloc(&x, 4096);
    int version = 2;
    if (version == 1)
        a<<<1, 32>>>(x);
    else
        b<<<1, 64>>>(x);
    if (version == 3)
        b<<<1, 128>>>(x);
}
"""


def test_the_launch_that_is_executed_is_taken():
    write("choice.cu", CHOICE)
    first, *rest = lines(f"simulate choice.cu {QUICK}")
    assert first.startswith("b: ")
    assert "note: launched as in line 10: grid 1, block 64, x f32[1024]" in rest
    assert "note: it is launched in line 12 too: --launch LINE takes another" in rest
    other = lines(f"simulate choice.cu -k a {QUICK}")  # asked for, though it is not executed
    assert "note: launched as in line 8: grid 1, block 32, x f32[1024]" in other
    assert any(
        "line 12: grid 1, block 128" in x for x in lines(f"simulate choice.cu {QUICK} --launch 12")
    )


def test_guessed_sizes_are_said_first_and_listed():
    first, *rest = lines(f"simulate add.cu -g 1 -b 64 -a n=50 {QUICK}")
    assert first.endswith(" Sizes of arrays are guessed.")
    assert "note: sizes guessed from addresses and guards: x f32[50]" in rest


def test_a_check_guesses_no_sizes_but_takes_those_of_host_code():
    assert refused("check add.cu -g 1 -b 64 -a n=50") == (
        "add.cu: no host code launches add: give float *x: "
        "python -m toolkit check add.cu -g 1 -b 64 -a n=50 -a 'x=f32[?]'"
    )
    assert lines("check scale.cu")[-1].startswith("scale<float, 3>: no errors")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("two.cu", "two.cu holds 2 kernels: say which one, by name or by number (-k 1): 1 add, 2"),
        ("two.cu -k 2", "fill<...> is never instantiated in two.cu: give -k 'fill<N>' with a type"),
        ("two.cu -k fill", "fill is a template that two.cu never instantiates: give -k 'fill<N>'"),
        ("two.cu -k 3", "unknown kernel '3': choose one of add, fill<...>"),
        ("two.cu -k ad -a nonsense -g x", "unknown kernel 'ad': did you mean 'add'?"),
        ("scale.cu -k scal -a nonsense", "unknown kernel 'scal': did you mean 'scale<float, 3>'?"),
        ("add.cu -g 1 -a f31=1", "--arg x ('f31=1'): unknown type 'f31': did you mean 'f32'?"),
        ("later.cu -a n=abc", "--arg n ('abc'): `int n` takes a number: give one such as 4096"),
        ("later.cu -a n=1.5", "--arg n ('1.5'): '1.5' is not an integer: give one such as"),
        ("add.cu -g 1 -b 1 -a n=1 -a n=2", "--arg '2': parameter 1 is given twice"),
        ("tiled -s 64 --launch 3", "--launch: tiled is a rung, which has its own launch"),
    ],
)
def test_a_mistake_is_one_line(arguments, message):
    assert refused(f"simulate {arguments}").startswith(message)


def test_a_kernel_that_a_macro_makes_is_taken_by_its_name():
    write(
        "made.cu", "#define MAKE(n) __global__ void k##n(float *x) { x[n] = 1; }\nMAKE(3)\n" + ADD
    )
    assert lines(f"simulate made.cu -k k3 -g 1 -b 1 -a f32[4] {QUICK}")[0].startswith("k3: ")


def test_a_kernel_is_chosen_by_its_number():
    assert lines(f"simulate two.cu -k 1 -g 1 -b 32 -a n=9 {QUICK}")[0].startswith("add: ")


INSTANTIATED = """__global__ void first(float *x) { x[0] = 1; }
template <int N> __global__ void scale(float *x) { x[threadIdx.x] *= N; }
template <typename T> __global__ void copy(const T *in, T *out) { *out = *in; }
template <typename T> void launch(const T *in, T *out) { copy<<<1, 32>>>(in, out); }
int main() { scale<2><<<1, 32>>>(0); scale<3><<<1, 32>>>(0); }
"""


def test_instantiations_are_listed_with_the_number_that_names_each():
    write("many.cu", INSTANTIATED)
    assert refused("simulate many.cu -k scale") == (
        "scale is a template: say which one, by name or by number (-k 1): 2 scale<2>, 3 scale<3>"
    )
    found = lines(f"simulate many.cu -k 3 -g 1 -b 32 -a f32[32] {QUICK}")
    assert found[0].startswith("scale<3>: ")


def test_the_name_of_an_instantiation_tells_the_types_that_host_code_does_not():
    write("many.cu", INSTANTIATED)
    assert refused("check many.cu -k 'copy<double>'").endswith("-a 'in=f64[?]' -a 'out=f64[?]'")


def test_arrays_of_bfloat16_get_their_sizes_from_host_code():
    write(
        "small.cu",
        "struct __nv_bfloat16 { unsigned short bits; };\n"
        "__global__ void clear(__nv_bfloat16 *x, int n) { x[threadIdx.x].bits = n; }\n"
        "int main() {\n"
        "    __nv_bfloat16 *x;\n"
        "    cudaMalloc(&x, 128);\n"
        "    clear<<<1, 64>>>(x, 64);\n"
        "}\n",
    )
    notes = lines(f"simulate small.cu {QUICK}")
    assert "note: launched as in line 6: grid 1, block 64, x bfloat16[64], n = 64" in notes


def test_a_fraction_of_an_unknown_type_is_taken_for_a_float():
    write(
        "typed.cu",
        "__global__ void fill(float *x, Real value) { x[0] = value; }\n",
    )
    command = "simulate typed.cu -g 1 -b 1 -a f32[1] -a 1.5"
    assert refused(command).endswith("`Real value` is not a plain type: give one, such as f32=1.5")


def test_bare_numbers_have_the_types_that_macros_and_typedefs_of_headers_stand_for():
    write("types.h", "#define DATA float\ntypedef double Real;\nusing Index = long long;\n")
    write(
        "typed.cu",
        '#include "types.h"\n'
        "__global__ void fill(Real *x, DATA f, Real r, Index n) { if (n == 1) x[0] = f + r; }\n",
    )
    command = f"simulate typed.cu -g 1 -b 1 -a f64[1] -a 1.5 -a 0.1 -a 1 --json {QUICK}"
    asked = json.loads("\n".join(lines(command)))["arguments"]
    assert asked == ["f64[1]", "f32=1.5", "f64=0.1", "i64=1"]


def test_kernels_in_namespaces_are_named_with_and_without_them():
    write(
        "deep.cu",
        "namespace a { namespace b {\n"
        "template <int N> __global__ void fill(float *x) { x[threadIdx.x] = N; }\n"
        "__global__ void clear(float *x) { x[threadIdx.x] = 0; }\n"
        "void go(float *x) { fill<4><<<1, 32>>>(x); clear<<<1, 32>>>(x); }\n"
        "} }\n"
        "int main() { float *x; cudaMalloc(&x, 128); a::b::go(x); }\n",
    )
    for name in ("fill", "fill<4>", "a::b::fill<4>", "clear", "a::b::clear", "1"):
        found = lines(f"simulate deep.cu -k '{name}' {QUICK}")
        assert "note: launched as in line 4: grid 1, block 32, x f32[32]" in found, name
    assert "did you mean 'b::clear'" not in refused(f"simulate deep.cu -k c::clear {QUICK}")


def test_a_launch_takes_the_default_values_of_parameters():
    write(
        "default.cu",
        "#define TWICE(x) (2 * x)\n"
        "__global__ void fill(float *x, int n = TWICE(8), float value = 1.5f) {\n"
        "    if (threadIdx.x < n) x[threadIdx.x] = value;\n}\n"
        "int main() { float *x; cudaMalloc(&x, 128); fill<<<1, 32>>>(x); }\n",
    )
    said = "note: launched as in line 5: grid 1, block 32, x f32[32], n = 16, value = 1.5"
    assert said in lines(f"simulate default.cu {QUICK}")


def test_a_kernel_that_an_if_leaves_out_is_said_to_be_so():
    write("parts.cu", f"#define FAST\n{ADD}#ifndef FAST\n{ADD.replace('add', 'slow')}#endif\n")
    assert "no host code launches slow, which stands in a part that an #if leaves out: give" in (
        refused("simulate parts.cu -k slow")
    )


def test_a_source_without_a_kernel_says_where_kernels_are():
    write("none.cu", '#include <stdio.h>\n#include "runner.cuh"\nint main() { run(0); }\n')
    Path("src").mkdir()
    write("src/runner.cuh", "void run(int n);\n")
    write("src/runner.cu", f"{ADD}void run(int n) {{ add<<<1, 32>>>(nullptr, n); }}\n")
    write("src/told.cu", 'int main() { puts("<<<1>>>"); } // add<<<1, 32>>>\n/* add<<< */\n')
    here = "none.cu holds no kernel: its header runner.cuh is in src: --option -Isrc; "
    assert refused("simulate none.cu -k add") == (
        f"{here}src/runner.cu launches add: give that file"
    )
    assert refused("simulate none.cu -g 1 -b 1 --option -Isrc").endswith(
        "holds no kernel: later.cu, scale.cu, src/runner.cu launch kernels: give one of them"
    )


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("m=4", "unknown parameter 'm': choose one of x, y, n"),
        ("f23=4", "unknown type 'f23': did you mean 'f32'"),
    ],
)
def test_a_name_that_is_neither_parameter_nor_type_is_refused(argument, said):
    assert said in refused(f"simulate scale.cu -a {argument}")
