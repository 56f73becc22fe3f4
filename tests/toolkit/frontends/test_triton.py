"""Kernels of Triton, compiled with no GPU: outputs are those of NumPy, lines those of Python."""

import json
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

pytest.importorskip("triton")

from analysis.errors import CompileError, InputError, UnknownNameError, UnsupportedError
from tests.refusals import refusal
from tests.toolkit.cli.commands import invoke
from toolkit import simulate

with catch_warnings():
    simplefilter("ignore")  # of the packages, about each other
    from tests.toolkit.frontends.kernels import of_triton as kernels


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def columns_of(counter, execution):
    return {line for (_, line), counts in execution.lines.items() if counts.get(counter)}


LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"


def test_addition_has_its_loads_and_its_store_at_their_lines():
    x, y = normal(1000), normal(1000, seed=1)
    found = simulate(
        kernels.add,
        grid=lambda meta: (-(-meta["n"] // meta["BLOCK"]),),
        arguments=[x, y, np.empty_like(x), 1000],
        defines={"BLOCK": 256},
    )
    np.testing.assert_array_equal(found.outputs[2], x + y)
    first = kernels.add.fn.__code__.co_firstlineno  # of the decorator
    assert columns_of(LOADS, found) == {first + 4, first + 5}
    assert columns_of(STORES, found) == {first + 6}
    assert "x = tl.load" in found.cubin.source.splitlines()[first + 3]


def test_specialisation_is_that_of_triton():
    x = normal(1024)

    def loads(n):
        found = simulate(
            kernels.add, grid=4, arguments=[x, x, np.empty_like(x), n], defines={"BLOCK": 256}
        )
        return {one.bytes_per_lane for one in found.instructions if one.opcode == "LDG"}

    # 16 divides 1,024: the mask is the same for both elements of a thread, which load together
    assert (loads(1024), loads(1001)) == ({8}, {4})


def test_an_argument_of_one_is_a_constant():
    x = normal(256)
    found = simulate(
        kernels.add, grid=1, arguments=[x, x, np.empty_like(x), 1], defines={"BLOCK": 256}
    )
    assert len(found.cubin.parameters) == 5  # n is compiled in
    np.testing.assert_array_equal(np.nonzero(found.outputs[2] == 2 * x)[0][:1], [0])


def test_softmax_is_that_of_numpy():
    x = normal(16, 1000)
    found = simulate(
        kernels.softmax,
        grid=(16,),
        arguments=[x, np.empty_like(x), 1000],
        defines={"COLUMNS": 1024, "num_warps": 8},
    )
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.outputs[1], e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    assert found.geometry.block == (256, 1, 1)  # 8 warps
    assert {file for file, _ in found.lines} == {"of_triton.py"}


def executed_or_needs_matrices(call):
    """Result of `call`; skipped where the simulator has no LDSM yet."""
    try:
        return call()
    except UnsupportedError as error:
        if "LDSM" not in str(error) and "STSM" not in str(error):
            raise
        return pytest.skip(str(error))


def test_layer_normalisation_is_that_of_numpy():
    x, weight, bias = normal(8, 1000), normal(1000, seed=1), normal(1000, seed=2)
    found = executed_or_needs_matrices(
        lambda: simulate(
            kernels.layernorm,
            grid=8,
            arguments=[x, weight, bias, np.empty_like(x), 1000, 1e-5],
            defines={"COLUMNS": 1024},
        )
    )
    scale = 1 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    expected = (x - x.mean(axis=1, keepdims=True)) * scale * weight + bias
    np.testing.assert_allclose(found.outputs[3], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_transposition_goes_through_shared_memory(dtype):
    x = normal(128, 64).astype(dtype)
    found = executed_or_needs_matrices(
        lambda: simulate(
            kernels.transpose,
            grid=(2, 1),
            arguments=[x, np.empty((64, 128), dtype), 128, 64],
            defines={"TILE": 64},
        )
    )
    np.testing.assert_array_equal(found.outputs[1], x.T)
    assert found.geometry.dynamic_shared_bytes >= 64 * 64 * x.itemsize  # a tile


def test_a_sum_of_blocks_is_added_atomically():
    x = normal(5000)
    found = simulate(
        kernels.total, grid=3, arguments=[x, np.zeros(1, np.float32), 5000], defines={"BLOCK": 2048}
    )
    np.testing.assert_allclose(found.outputs[1], x.sum(dtype=np.float64), rtol=1e-4)


def test_a_configuration_is_chosen_by_its_values():
    x = normal(1000)
    found = simulate(kernels.tuned, grid=1, arguments=[x, 1000], defines={"BLOCK": 1024})
    np.testing.assert_array_equal(found.outputs[0], 2 * x)
    assert found.geometry.block == (256, 1, 1)  # the configuration of 1,024 has 8 warps
    own = simulate(kernels.tuned, grid=8, arguments=[x, 1000], defines={"BLOCK": 128})
    assert own.geometry.block == (128, 1, 1)  # of none: 4 warps
    said = refusal(InputError, simulate, kernels.tuned, grid=1, arguments=[x, 1000])
    assert "tuned is autotuned, and 2 of its 2 configurations agree" in said
    assert "BLOCK=256 num_warps=2" in said


def test_heuristics_choose_from_the_arguments():
    x = normal(1000)
    found = simulate(kernels.by_heuristics, grid=1, arguments=[x, 1000])
    np.testing.assert_array_equal(found.outputs[0], x + 1)


def test_other_architectures_are_compiled_for_their_devices():
    x = normal(256)
    launch = {"grid": 1, "arguments": [x, x, np.empty_like(x), 256], "defines": {"BLOCK": 256}}
    assert simulate(kernels.add, **launch, device="a100-40gb").cubin.architecture == "sm_80"


OBJECTS = np.array([None])


@pytest.mark.parametrize(
    ("arguments", "defines", "error", "said"),
    [
        ([1, 2, 3], {"BLOCK": 64}, InputError, "add: no value for `n`: give 1 more argument"),
        ([1, 2, 3, 4], {}, InputError, "add: no value for `BLOCK`: give defines={'BLOCK': …}"),
        ([1, 2, 3, 4, 5, 6], {}, InputError, "and 6 arguments were given"),
        ([1, 2, 3, 4], {"BLOK": 64}, UnknownNameError, "option of add 'BLOK': choose one of x_ptr"),
        ([1, 2, "x", 4], {"BLOCK": 64}, InputError, "Triton refuses an argument"),
        ([1, 2, 3, 2**70], {"BLOCK": 64}, InputError, "Triton refuses an argument: integer to be"),
        ([1, 2, OBJECTS, 4], {"BLOCK": 64}, InputError, "refuses an argument: no type 'object'"),
        ([1, 2, 3, 4], {"BLOCK": 64, "num_ctas": 2}, UnsupportedError, "num_ctas = 2"),
    ],
)
def test_arguments_that_triton_does_not_take_are_refused(arguments, defines, error, said):
    arrays = [
        np.zeros(64, np.float32) if type(one) is int and one < 4 else one for one in arguments
    ]
    assert said in refusal(error, simulate, kernels.add, grid=1, arguments=arrays, defines=defines)


def test_a_mistake_has_its_line():
    said = refusal(CompileError, simulate, kernels.mistaken, grid=1, arguments=[normal(64), 64, 64])
    line = kernels.mistaken.fn.__code__.co_firstlineno + 3
    assert said.startswith(f"of_triton.py, line {line}: Triton cannot compile mistaken: ")


def test_the_command_takes_constexprs_and_chooses_types(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(
        f"simulate {kernels.__file__}:add -g 4 -a f32[1000]=2 -a f32[1000]=arange "
        "-a f32[1000]=zeros -a 1000 -D BLOCK=256 -D num_warps=2 --save 2=out.npy --json"
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["block"] == [64, 1, 1]  # 2 warps
    assert document["defines"] == {"BLOCK": "256", "num_warps": "2"}
    assert document["source"] == "of_triton.py:add"
    assert "of_triton.py was imported, which runs its top level" in document["notes"]
    np.testing.assert_array_equal(np.load("out.npy"), np.arange(1000) + 2)


def test_an_expression_of_triton_is_a_constexpr(tmp_path):
    (tmp_path / "typed.py").write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\n"
        "def fill(x_ptr, KIND: tl.constexpr, ON: tl.constexpr):\n"
        "    if ON:\n"
        "        tl.store(x_ptr + tl.arange(0, 32), tl.full((32,), 2.75, KIND))\n"
    )
    command = f"simulate {tmp_path}/typed.py:fill -g 1 -a f32[32] --json"
    result = invoke(f"{command} -D KIND=tl.float16 -D ON=True")
    assert result.exit_code == 0, result.output
    counters = json.loads(result.stdout)["counters"]
    assert counters[STORES] == 4  # 32 floats of 4 B in sectors of 32 B
    counters = json.loads(invoke(f"{command} -D KIND=tl.float16 -D ON=False").stdout)["counters"]
    assert counters[STORES] == 0


@pytest.mark.parametrize(
    ("arch", "kind", "products"),
    [
        # an HMMA.16816 has 16 x 8 x 16 products, an HMMA.1688 of TF32 half of them
        ("sm_80", np.float16, 64 * 128 * 64 // 2048),
        ("sm_80", np.float32, 64 * 128 * 64 // 1024),
        ("sm_120", np.float16, 64 * 128 * 64 // 2048),
    ],
)
def test_a_product_runs_on_tensor_cores(arch, kind, products):
    a, b = normal(64, 64).astype(kind), normal(64, 128, seed=1).astype(kind)
    c = np.zeros((64, 128), np.float32)
    found = simulate(
        kernels.product,
        grid=2,
        arguments=[a, b, c, 128, 64],
        defines={"M": 64, "COLUMNS": 64, "STEP": 32},
        arch=arch,
        predict=False,
        blocks="all",
    )
    error = np.abs(found.outputs[2] - a.astype(np.float64) @ b.astype(np.float64)).max()
    assert error < (1e-4 if kind == np.float16 else 0.1)
    assert found.counters["sm__inst_executed_pipe_tensor_op_hmma.sum"] == products
