"""Every probe compiles for every architecture, and its loop holds what it claims to measure."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cubins import cubin_of
from tests.sampling import chosen_of, exhaustive
from toolkit.execution.simulate import simulate
from toolkit.gpu.context import Gpu
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.patching import rewritten
from toolkit.microbenchmarks import (
    atomics,
    barriers,
    bulk,
    code,
    global_memory,
    issue,
    queues,
    registers,
    shared,
)
from toolkit.microbenchmarks.__main__ import MODULES
from toolkit.microbenchmarks.registers import BANKS, PATTERNS

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90")
LAST_AND_OLDER = (
    "sm_90",
    *(exhaustive(arch) for arch in ("sm_75", "sm_80", "sm_86")),
)
ALL = "all of sm_90"
LAST_ALL_AND_OLDER = (*LAST_AND_OLDER, exhaustive(ALL))
WITH_PROBES = (issue, registers, code, shared, barriers, global_memory, atomics)

ALIKE = (registers, code)

Code = dict[str, list[tuple[int, str]]]


def loop_of(instructions):
    """The SASS of the innermost loop: from the target of the last jump backwards to that jump.

    `instructions` are (address, text) of one function.
    """
    for address, sass in reversed(instructions):
        words = sass.split()
        target = words[-1] if words and any(w.startswith("BRA") for w in words) else ""
        if target.startswith("0x") and int(target, 16) < address:
            start = int(target, 16)
            return [inside for at, inside in instructions if start <= at <= address]
    return []


def chosen(module, arch):
    """A module's probes; of the many that differ in few bits, some."""
    if module not in ALIKE or arch == ALL:
        return module.PROBES
    return module.PROBES[::9]


def sass(module, arch):
    """(address, text) of the instructions of a module's probes, rewritten, by kernel."""
    probes = chosen(module, arch)
    source = "\n".join(probe.source for probe in probes)
    first = probes[0].name
    cubin = cubin_of(source, first, arch.removeprefix("all of "), options=())
    image = rewritten(cubin.image, {p.name: p.patch for p in probes if p.patch})
    return _functions(image)


def _functions(image):
    _, functions = json.loads(disassemble(image))
    return {
        function["function-name"]: [
            (16 * i, _text(instruction))
            for i, instruction in enumerate(function["sass-instructions"])
        ]
        for function in functions
    }


def _text(instruction):
    parts = ("predicate", "opcode", "operands")
    return " ".join(instruction[part] for part in parts if instruction.get(part))


def count(pattern, loop):
    return sum(re.search(pattern, text) is not None for text in loop)


@pytest.mark.parametrize(
    ("module", "arch"),
    [
        *chosen_of(
            [(module, arch) for module in WITH_PROBES for arch in ARCHITECTURES],
            lambda case: case[1] == "sm_90" and case[0] not in (*ALIKE, atomics),
        ),
        *(exhaustive(module, ALL) for module in ALIKE),
    ],
    ids=lambda value: getattr(value, "__name__", value).rpartition(".")[2],
)
def test_what_is_measured_is_in_the_loop(module, arch):
    code = sass(module, arch)
    found = {p.name: count(p.opcode, loop_of(code[p.name])) for p in chosen(module, arch)}
    assert {
        p.name: (found[p.name], p.count) for p in chosen(module, arch) if found[p.name] < p.count
    } == {}


@pytest.mark.parametrize(("pipe", "opcode"), [("plain", "HFMA2 "), ("mma", "HFMA2.MMA ")])
def test_halves_are_multiplied_on_one_pipe(pipe, opcode):
    """Compilers take both opcodes in turn."""
    code = sass(issue, "sm_90")
    for name in (f"rate_hfma2_{pipe}", f"pair_imad_hfma2_{pipe}"):
        found = [text for text in loop_of(code[name]) if "HFMA2" in text]
        assert len(found) in (issue.COUNT, issue.COUNT // 2)
        assert all(text.startswith(opcode) for text in found), name
    assert len({text.split()[0] for text in loop_of(code["rate_hfma2"]) if "HFMA2" in text}) == 2


@pytest.mark.parametrize("arch", ["sm_90", exhaustive("sm_100")])
def test_bulk_copies_are_what_is_executed(arch):
    code = sass(bulk, arch)  # of loops around loops: what waits stands behind
    found = {p.name: count(p.opcode, [text for _, text in code[p.name]]) for p in bulk.PROBES}
    assert {p.name: found[p.name] for p in bulk.PROBES if found[p.name] != p.count} == {}


def test_a_round_of_bulk_copies_ends_when_all_are_there():
    probe, rounds = bulk.COPIES[1024, 4], 3
    arguments = [np.zeros(2, np.int64), np.zeros(65_536, np.uint32), np.zeros(1, np.int32)]
    memory = np.zeros(bulk.REGION_BYTES, np.uint8)
    execution = simulate(
        probe.source, grid=1, block=32, dynamic_shared_bytes=4096,
        arguments=[*arguments, memory, np.int32(rounds), np.int32(0)],
        predict=False,
    )  # fmt: skip
    sectors = rounds * bulk.COUNT * 4 * 1024 // 32
    assert execution.counters["bulk__sectors_read.sum"] == sectors
    unused = "argument 2 `offsets`, int32[1] is never read, nor written: "  # all probes take it
    assert execution.notes[1:] == (f"{unused}does the kernel use another array?",)
    assert execution.notes[0].startswith("the clock that the kernel reads counts")


@pytest.mark.parametrize("arch", LAST_ALL_AND_OLDER)
def test_rewritten_operands_are_those_of_the_pattern(arch):
    code = sass(registers, arch)
    for name, probe in BANKS.items():
        if probe.name not in code:
            continue
        ffmas = [text for text in loop_of(code[probe.name]) if text.startswith("FFMA")]
        pattern = PATTERNS[name]
        for text, wanted in zip(ffmas, list(pattern) * len(ffmas), strict=False):
            assert [_bank(operand) for operand in text.split()[1].split(",")] == [
                _wanted(operand) for operand in wanted.split()
            ], (name, text)


def _bank(operand):
    register, _, reuse = operand.partition(".")
    bank = "z" if register == "RZ" else "eo"[int(register.removeprefix("R")) % 2]
    return bank + ("!" if reuse else "")


def _wanted(operand):
    return operand[0] + ("!" if operand.endswith("!") else "")


last_and_older = pytest.mark.parametrize("arch", LAST_AND_OLDER)


@last_and_older
def test_what_is_scarce_is_spread(arch):
    """A load after every 8 FFMAs, though the compiler puts loads first."""
    loop = loop_of(sass(shared, arch)["lds_128_beside_8_ffma"])
    kinds = "".join("L" if "LDS" in text else "F" for text in loop if text[:3] in ("LDS", "FFM"))
    assert kinds == "LFFFFFFFF" * 8


def test_names_of_constants_are_unique_and_say_their_unit():
    names = [benchmark.name for module in MODULES for benchmark in module.BENCHMARKS]
    assert len(names) == len(set(names))
    units = ("_cycles", "_s", "_bytes", "_cycle", "_requests", "_lines", "_per_slice")
    units += ("_hz", "_products", "_blocks")
    assert [n for n in names if not n.endswith(units)] == []


@last_and_older
def test_a_line_is_loaded_between_the_clocks(arch):
    """A compiler merges loads of one address: what is timed must be there."""
    source = global_memory.SOURCE
    cubin = cubin_of(source, "line_latencies", arch, options=())
    code = _functions(cubin.image)["line_latencies"]
    kinds = [
        text.split()[0][:4] for _, text in code if re.match(r"CS2R \w+,SR_CLOCK|LDG|STS", text)
    ]
    assert kinds[:4] == ["CS2R", "LDG.", "STS", "CS2R"]


@last_and_older
def test_loads_of_a_stream_are_in_flight_together(arch):
    code = sass(global_memory, arch)
    for probe in global_memory.STREAMS.values():
        kinds = "".join("L" if "LDG" in text else " " for text in loop_of(code[probe.name]))
        assert kinds.split() == ["L" * global_memory.FLIGHT] * global_memory.GROUPS


@pytest.mark.parametrize("kind", queues.KINDS)
def test_requests_stand_in_a_row_between_two_clocks(kind):
    defines = queues.macros(kind, queues.MANY)
    image = cubin_of(queues.SOURCE, "requests", options=(), defines=defines).image
    sass = [text.split()[0].split(".")[0] for _, text in _functions(image)["requests"]]
    opcode = "LDG" if kind == "global_loads" else "LDGSTS"
    row = " ".join(word for word in sass if word in {opcode, "CS2R", "PMTRIG"})
    one = f"CS2R {f'{opcode} ' * queues.MANY}PMTRIG CS2R"
    assert row.count(one) == 3


@pytest.mark.parametrize("arch", ["sm_90", exhaustive(ALL)])
def test_jumps_go_over_code_that_is_never_executed(arch):
    functions = sass(code, arch)
    for (kib, jumps), probe in code.LOOPS.items():
        if probe.name not in functions:
            continue
        loop = loop_of(functions[probe.name])
        over = [text for text in loop[:-1] if "BRA" in text]
        assert len(over) == jumps
        assert len(loop) * 16 == pytest.approx(1024 * kib + jumps * (code.DEAD + 1) * 16, abs=400)


def test_the_first_bytes_of_the_buffer_become_zero_and_l2_is_flushed_behind_its_first_half(cuda):
    cuda.free_bytes = 2**14
    with Gpu() as gpu:
        memory = global_memory.Memory(SimpleNamespace(gpu=gpu, device=gpu.device))
        content = cuda.memory(int(memory.buffer))
        content[:] = 7
        assert memory.zero(64) is memory.buffer
        assert not content[:64].any()
        assert (content[64:] == 7).all()
        memory.flush_l2()
        half = len(content) // 2
        assert (content[64:half] == 7).all()
        assert not content[half:].any()
        del memory, content


def test_the_first_lines_of_the_buffer_become_a_ring_before_they_are_read(cuda):
    cuda.free_bytes = 2**14
    launched = []

    def kernel(source, name):
        assert f"void {name}(" in source
        return SimpleNamespace(
            prepared=lambda geometry, arguments: lambda: launched.append(arguments)
        )

    with Gpu() as gpu:
        memory = global_memory.Memory(SimpleNamespace(gpu=gpu, device=gpu.device, kernel=kernel))
        assert memory.link(7) is memory.buffer
        ((buffer, lines, step),) = launched
        assert (buffer is memory.buffer, int(lines), int(step)) == (True, 7, -1)
        launched.clear()
        del memory, buffer
