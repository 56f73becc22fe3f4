"""Record what decode makes of the machine code of recorded/decode.cu, one file per architecture.

    python -m tests.toolkit.machine_code.decode_snapshots

A snapshot holds what nvdisasm printed and the instructions decoded from it, for test_decode.py.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from toolkit.machine_code.compile import compile_cubin, compiler_version
from toolkit.machine_code.decode import decode
from toolkit.machine_code.disassemble import disassemble, disassembler
from toolkit.machine_code.instruction import Address, Constant, Instruction, Operand, Register

RECORDED = Path(__file__).parent / "recorded"
SOURCE = RECORDED / "decode.cu"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def path_of(arch: str) -> Path:
    return RECORDED / f"decode_{arch}.json"


def disassembly(arch: str) -> str:
    """What nvdisasm prints of the kernels, as far as it is code."""
    text = SOURCE.read_text(encoding="utf-8")
    cubin = compile_cubin(text, name=SOURCE.name, kernel="calls", arch=arch)
    header, functions = json.loads(disassemble(cubin.image), object_pairs_hook=list)
    kept = [pair for pair in header if pair[0] in ("SM", "Producer")]
    return _dumped([kept, functions])


def decoded(printed: str) -> dict[str, list[list[Any]]]:
    """The instructions of each function, as lists: see `row`."""
    return {f.name: [row(i) for i in f.instructions] for f in decode(printed)}


def row(instruction: Instruction) -> list[Any]:
    """Address, text, guard, opcode, modifiers, and each operand with all that is not default."""
    return [
        instruction.address,
        instruction.text,
        instruction.guard and plain(instruction.guard),
        instruction.opcode,
        list(instruction.modifiers),
        [plain(operand) for operand in instruction.operands],
    ]


def plain(operand: Operand) -> dict[str, Any]:
    """An operand as JSON: its kind, and its fields that have not their default value."""
    values: dict[str, Any] = {"kind": type(operand).__name__}
    for field in fields(operand):
        value = getattr(operand, field.name)
        if field.default is MISSING or value != field.default:
            values[field.name] = _plain_value(value)
    return values


def _plain_value(value: Any) -> Any:
    if isinstance(value, Register | Constant | Address):
        return plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, tuple) else value


def _dumped(value: Any) -> str:
    """JSON of lists of pairs as objects: an object may have a key twice, as nvdisasm's do."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return "{" + ",".join(f"{json.dumps(k)}:{_dumped(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return json.dumps(value)


def record(arch: str) -> None:
    printed = disassembly(arch)
    rows = {
        name: ",\n".join(f"    {json.dumps(row)}" for row in found)
        for name, found in decoded(printed).items()
    }
    path_of(arch).write_text(
        "{\n"
        f' "compiler": {json.dumps(compiler_version())},\n'
        f' "disassembler": {json.dumps(disassembler().version)},\n'
        f' "printed": {json.dumps(printed)},\n'
        ' "decoded": {\n'
        + ",\n".join(f"  {json.dumps(name)}: [\n{text}\n  ]" for name, text in rows.items())
        + "\n }\n}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    for arch in ARCHITECTURES:
        record(arch)
        print(path_of(arch))
