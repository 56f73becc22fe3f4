"""Arguments of a listed launch: values as bytes, arrays by a rule.

A rule has a type (`f32`), a count, and a kind: `zero`, `constant`, `by_one` (low, low + 1 ...),
`permutation` of these, `sorted` or `uniform` from low to high. Of the last two a share `nonzero` is
not zero. Rules come from what the host code of a program wrote, which is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError
from toolkit.machine_code.signature import Declared

Rule = Mapping[str, Any]
Array = NDArray[np.generic]
SPARSE = 0.98  # a smaller share of elements that are not zero is kept
MOST_ODD = 0.001  # share of elements that are no plain numbers, beyond which there is no rule
LENGTHS = {"i8": 1, "u8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}
_OF_KIND = {
    ("integer", 1): "i8",
    ("integer", 2): "i16",
    ("integer", 4): "i32",
    ("integer", 8): "i64",
    ("float", 2): "f16",
    ("float", 4): "f32",
    ("float", 8): "f64",
    ("bfloat16", 2): "bf16",
}


class NoRuleError(InputError):
    """An argument that no rule describes."""


def rule_of(described: Mapping[str, Any], length: int, declared: Declared | None) -> Rule:
    """The rule of an array of `length` bytes, from the statistics that the runtime recorded."""
    kind = None
    if declared is not None and declared.kind is not None and declared.size is not None:
        kind = _OF_KIND.get((declared.kind, declared.size))
        if kind == "i8" and any(word in declared.text for word in ("unsigned", "bool", "uchar")):
            kind = "u8"
    if described.get("zero"):
        return {"type": kind or "u8", "count": length // LENGTHS[kind or "u8"], "kind": "zero"}
    if kind is None or kind not in described:
        raise NoRuleError(f"content of {declared.text if declared else 'an unknown type'}")
    found = described[kind]
    count = found["count"]
    if found["odd"] > MOST_ODD * count:
        raise NoRuleError("numbers that are not finite or very small")
    rule: dict[str, Any] = {"type": kind, "count": count}
    low, high = found["low"], found["high"]
    if kind[0] in "iu":
        low, high = int(low), int(high)
    if low == high:
        return rule | {"kind": "constant", "low": low}
    if found["by_one"]:
        return rule | {"kind": "by_one", "low": low}
    if found.get("permutation"):
        return rule | {"kind": "permutation", "low": low}
    rule |= {"kind": "sorted" if found["ascending"] else "uniform", "low": low, "high": high}
    share = found["nonzero"] / count
    return rule | {"nonzero": round(share, 6)} if share < SPARSE else rule


def array_of(rule: Rule, seed: int) -> Array:
    """The array of a rule; the same for the same seed."""
    count, kind = rule["count"], rule["kind"]
    whole = {"i": "int", "u": "uint", "f": "float", "b": "uint"}[rule["type"][0]]
    dtype = np.dtype(f"{whole}{8 * LENGTHS[rule['type']]}")
    if kind == "zero":
        return np.zeros(count, dtype)
    rng = np.random.default_rng(seed)
    if kind == "constant":
        exact = np.float64 if rule["type"][0] in "fb" else dtype
        return _typed(np.full(count, rule["low"], exact), rule["type"])
    if kind in ("by_one", "permutation"):
        steps = np.arange(count, dtype=np.int64) + int(rule["low"])
        return _typed(rng.permutation(steps) if kind == "permutation" else steps, rule["type"])
    low, high = rule["low"], rule["high"]
    if rule["type"][0] in "fb":
        values = rng.random(count, np.float64 if rule["type"] == "f64" else np.float32)
        values *= high - low
        values += low
    else:
        values = rng.integers(low, high, count, dtype=dtype, endpoint=True)
    if kind == "sorted":
        values.sort()
        values[0], values[-1] = low, high
    elif (share := rule.get("nonzero")) is not None:
        values[rng.random(count, np.float32) >= share] = 0
    return _typed(values, rule["type"])


def _typed(values: Array, kind: str) -> Array:
    if kind == "bf16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    of = {"i": "int", "u": "uint", "f": "float"}[kind[0]]
    return np.asarray(values).astype(f"{of}{8 * LENGTHS[kind]}", copy=False)


def value_of(hexadecimal: str, declared: Declared | None) -> Any:
    """A parameter passed by value."""
    content = bytes.fromhex(hexadecimal)
    kind = None if declared is None or declared.components != 1 else declared.kind
    if kind == "float" and len(content) in (2, 4, 8):
        return np.frombuffer(content, f"f{len(content)}")[0]
    if len(content) in (1, 2, 4, 8) and kind in (None, "integer"):
        unsigned = np.frombuffer(content, f"u{len(content)}")[0]
        return unsigned if kind is None else np.frombuffer(content, f"i{len(content)}")[0]
    return np.frombuffer(content, np.dtype((np.void, len(content))))[0]


def arguments_of(
    parameters: Sequence[Mapping[str, Any]], declared: Sequence[Declared] | None, name: str
) -> list[Any]:
    """The arguments of a listed launch, in order."""
    types: Sequence[Declared | None] = declared or [None] * len(parameters)
    return [
        array_of(one["array"], crc32(f"{name} {place}".encode()))
        if "array" in one
        else value_of(one["value"], of)
        for place, (one, of) in enumerate(zip(parameters, types, strict=True))
    ]


def symbols_of(symbols: Mapping[str, Rule], name: str) -> dict[str, Array]:
    """Contents of variables by their names, as bytes."""
    return {
        symbol: array_of(rule, crc32(f"{name} {symbol}".encode()))
        for symbol, rule in symbols.items()
    }
