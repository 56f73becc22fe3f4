"""Operations of an instruction: of tensor cores by the type of their operands, and of FP16."""

from __future__ import annotations

import re
from functools import cache

# Types of the operands, as Nsight Compute's `sm__ops_path_tensor_src_*` name them.
SOURCES = (
    *("fp16", "bf16_dst_fp32", "tf32_dst_fp32", "fp8", "fp4_fp6_dst_fp32", "fp4_fp6_dst_fp16"),
    *("fp4_dst_fp32", "int8", "int4", "int1", "fp64"),
)
OPERATIONS_OF_MULTIPLY_ADD = 2

_PRODUCT = re.compile(r"([HIBDQO])(G?)MMA\.(?:SF\.)?([0-9x]+)((?:\.\w+)*)")
# HMMA.16816: the extents in a row; wgmma and DMMA have an x between them
_EXTENTS = re.compile(r"(\d+)x(\d+)x(\d+)$|(16|8)(8)(\d+)$")
ROWS_OF_WARPGROUP, ROWS_OF_ITS_WARP = 64, 16


@cache
def products_of(text: str) -> tuple[str, int]:
    """Type of the operands of a matrix product, and its operations per warp; ("", 0) for others.

    `text` is the instruction as nvdisasm prints it, without or with operands.

    >>> products_of("HMMA.16816.F32.BF16 R4, R8, R12, R4")
    ('bf16_dst_fp32', 4096)
    >>> products_of("HGMMA.64x128x16.F32 R24, gdesc[UR8], R24")
    ('fp16', 65536)
    >>> products_of("BMMA.168256.XOR.POPC R4, R8, R12, R4")
    ('int1', 65536)
    >>> products_of("OMMA.SF.16864.F32.E2M1.E2M1.E8 R12, R12, R10, R16, R0, R21, URZ")
    ('fp4_dst_fp32', 16384)
    >>> products_of("FFMA R0, R1, R2, R3")
    ('', 0)
    """
    found = _PRODUCT.search(text)
    extents = _EXTENTS.match(found[3]) if found else None
    if not found or not extents:
        return "", 0
    m, n, k = (int(one) for one in extents.groups() if one is not None)
    rows = ROWS_OF_ITS_WARP if m == ROWS_OF_WARPGROUP else m
    if found[3] == "884" and found[1] == "H" and ".F16.F16" in found[4]:
        rows *= 2  # of four products in two steps; each of four steps makes as many as one product
    return _source(found[1], found[4].split(".")), OPERATIONS_OF_MULTIPLY_ADD * rows * n * k


def _source(letter: str, modifiers: list[str]) -> str:
    if letter == "H":
        wide = {"BF16", "TF32"}.intersection(modifiers)
        return f"{wide.pop().lower()}_dst_fp32" if wide else "fp16"
    if letter == "I":
        return "int4" if {"S4", "U4"}.intersection(modifiers) else "int8"
    if letter == "Q" and {"E3M2", "E2M3", "E2M1"}.intersection(modifiers):
        return "fp4_fp6_dst_fp16" if "F16" in modifiers else "fp4_fp6_dst_fp32"
    return {"B": "int1", "D": "fp64", "Q": "fp8", "O": "fp4_dst_fp32"}[letter]


# Operations of a lane in half precision. Instructions that only move or convert a value have none.
_OF_HALVES = {"HFMA2": 4, "HADD2": 2, "HMUL2": 2}
_NO_ARITHMETIC = ("-RZ, RZ", ", -RZ, ")  # HFMA2 with which a constant is loaded, HADD2.F32 of x + 0


def is_move_of_halves(opcode: str, text: str) -> bool:
    """True for an instruction on halves that computes nothing."""
    return opcode.startswith("H") and any(mark in text for mark in _NO_ARITHMETIC)


def half_operations(opcode: str, text: str) -> int:
    """Operations of a lane in half precision, 0 for other instructions."""
    return 0 if is_move_of_halves(opcode, text) else _OF_HALVES.get(opcode, 0)
