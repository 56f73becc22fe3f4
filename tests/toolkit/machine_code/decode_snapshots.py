"""Record what decode makes of the machine code of recorded/decode.cu on each architecture.

    python -m tests.toolkit.machine_code.decode_snapshots

The recording holds what nvdisasm printed and the instructions decoded from it, for test_decode.py.
"""

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from toolkit.machine_code.compile import compile_cubin, compiler_version
from toolkit.machine_code.decode import decode
from toolkit.machine_code.disassemble import disassemble, disassembler
from toolkit.machine_code.instruction import (
    INSTRUCTION_BYTES,
    Address,
    Constant,
    Register,
)
from validation import recordings

SOURCE = Path(__file__).parent / "recorded" / "decode.cu"
RECORDING = SOURCE.with_suffix(".json")
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")

Snapshot = tuple[str, dict[str, list[list[Any]]]]  # what nvdisasm printed; see `decoded`


def disassembly(arch):
    """What nvdisasm prints of the kernels, as far as it is code."""
    text = SOURCE.read_text(encoding="utf-8")
    cubin = compile_cubin(text, name=SOURCE.name, kernel="calls", arch=arch)
    header, functions = json.loads(disassemble(cubin.image), object_pairs_hook=list)
    kept = [pair for pair in header if pair[0] in ("SM", "Producer")]
    return _dumped([kept, functions])


def decoded(printed):
    """The instructions of each function, as lists: see `row`."""
    return {f.name: [row(i) for i in f.instructions] for f in decode(printed)}


def row(instruction):
    """Address, text, guard, opcode, modifiers, and each operand with all that is not default."""
    return [
        instruction.address,
        instruction.text,
        instruction.guard and plain(instruction.guard),
        instruction.opcode,
        list(instruction.modifiers),
        [plain(operand) for operand in instruction.operands],
    ]


def plain(operand):
    """An operand as JSON: its kind, and its fields that have not their default value."""
    values = {"kind": type(operand).__name__}
    for field in fields(operand):
        value = getattr(operand, field.name)
        if field.default is MISSING or value != field.default:
            values[field.name] = _plain_value(value)
    return values


def _plain_value(value):
    if isinstance(value, Register | Constant | Address):
        return plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, tuple) else value


def _dumped(value):
    """JSON of lists of pairs as objects: an object may have a key twice, as nvdisasm's do."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return "{" + ",".join(f"{json.dumps(k)}:{_dumped(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return json.dumps(value)


def table(snapshots):
    """Snapshots as a recording: each instruction once, and its number wherever it stands."""
    numbers = {}

    def number(position, row):
        assert row[0] == INSTRUCTION_BYTES * position
        return numbers.setdefault(json.dumps(row[1:]), len(numbers))

    functions = {
        arch: {name: [number(*one) for one in enumerate(rows)] for name, rows in found.items()}
        for arch, (_, found) in snapshots.items()
    }
    return {
        "printed": [[arch, printed] for arch, (printed, _) in snapshots.items()],
        "functions": functions,
        "instructions": [json.loads(row) for row in numbers],
    }


def recorded(arch):
    """What was printed, and what is to be decoded from it."""
    recording = recordings.read(RECORDING)
    found = {
        name: [
            [INSTRUCTION_BYTES * n, *recording["instructions"][k]] for n, k in enumerate(numbers)
        ]
        for name, numbers in recording["functions"][arch].items()
    }
    return dict(recording["printed"])[arch], found


def main():
    printed = {arch: disassembly(arch) for arch in ARCHITECTURES}
    versions = {"compiler": compiler_version(), "disassembler": disassembler().version}
    snapshots = {arch: (text, decoded(text)) for arch, text in printed.items()}
    recordings.write(RECORDING, {**versions, **table(snapshots)})


if __name__ == "__main__":
    main()
