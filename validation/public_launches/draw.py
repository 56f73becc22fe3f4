"""The lists of public launches, drawn by a seed from what `capture` recorded.

    python -m validation.public_launches.draw FOLDER [--part fourth]

writes `recorded/list.json`, or `recorded/fourth_list.json`. For the two halves, first one launch of
each kernel is drawn, in the order of SEED, then further ones with another grid or block; a family
(a program) has at most MOST_OF_FAMILY. Families, in the order of SEED, go to the half that has
fewer launches. A quarter of the launches finds a warm L2, an eighth a clean one, the others a dirty
one.

A later part has no kernel or machine code twice, and no program, kernel or machine code of a part
before it. Machine code is the same if its opcodes are, in their order. First each row that machine
code shows (`shown_rows`) gets up to LEAST_OF_ROW kernels, in turns and in the order of the part's
seed, of the programs that were drawn from least; then all other kernels get a launch, then a second
one. If more than DRAM_SHARE of its launches have DRAM as the measured limiter, those of them that
were drawn last are dropped; `place` says when a launch was drawn.

A launch that takes less than 5 µs when it is measured is dropped: that is a rule of the list. Any
other that is dropped is named with the reason.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.machine_code.kernel import Kernel
from validation import recordings
from validation.public_launches.arguments import LENGTHS
from validation.public_launches.capture import EXCLUDED
from validation.public_launches.listed import HALVES, PARTS, SEED, SEEDS, Part, before, list_of
from validation.public_launches.shown_rows import Row, rows_of

LAUNCHES = 210
MOST_OF_FAMILY, MOST_OF_KERNEL = 8, 4
WARM, CLEAN = 0.25, 0.125
LAUNCHES_OF_PART, LEAST_OF_ROW, MOST_OF_FAMILY_IN_PART = 140, 5, 4
DRAM_SHARE = 0.3
Key = tuple[str, str]  # family and symbol of a kernel


def drawn(launches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The launches of the list, with their halves and what they find in L2."""
    rng = random.Random(SEED)
    of_kernel = _of_kernels(launches)
    order = sorted(of_kernel)
    rng.shuffle(order)
    for key in order:
        rng.shuffle(of_kernel[key])
    found, of_family = list[dict[str, Any]](), Counter[str]()
    for turn in range(MOST_OF_KERNEL):
        for key in order:
            may_be = turn < len(of_kernel[key]) and of_family[key[0]] < MOST_OF_FAMILY
            if may_be and len(found) < LAUNCHES:
                of_family[key[0]] += 1
                found.append(of_kernel[key][turn])
    families = sorted(of_family)
    rng.shuffle(families)
    halves: dict[str, str] = {}
    sizes = Counter({"first": 0, "second": 0})
    for family in families:
        halves[family] = min(sizes, key=lambda half: sizes[half])
        sizes[halves[family]] += of_family[family]
    return _named(found, halves, rng)


def drawn_by_rows(
    part: Part, launches: Sequence[dict[str, Any]], rows: Mapping[Key, Sequence[Row]]
) -> list[dict[str, Any]]:
    """The launches of a later part; `rows` are those that each kernel shows."""
    rng = random.Random(SEEDS[part])
    of_kernel = _of_kernels(launches)
    order = sorted(of_kernel)
    rng.shuffle(order)
    for key in order:
        rng.shuffle(of_kernel[key])
    found, of_family, taken = list[dict[str, Any]](), Counter[str](), Counter[Key]()

    def may_be(key: Key) -> bool:
        return of_family[key[0]] < MOST_OF_FAMILY_IN_PART and len(found) < LAUNCHES_OF_PART

    def take(key: Key) -> None:
        one = of_kernel[key][taken[key]]
        found.append({"place": len(found), "rows": list(rows[key])} | one)
        taken[key] += 1
        of_family[key[0]] += 1

    for _ in range(LEAST_OF_ROW):
        for row in Row:
            keys = [key for key in order if row in rows[key] and not taken[key] and may_be(key)]
            if keys:
                take(min(keys, key=lambda key: of_family[key[0]]))
    for turn in range(2):
        for key in order:
            if taken[key] == turn < len(of_kernel[key]) and may_be(key):
                take(key)
    return _named(found, dict.fromkeys(of_family, part), rng)


def _of_kernels(launches: Sequence[dict[str, Any]]) -> dict[Key, list[dict[str, Any]]]:
    """The launches of each kernel that differ in grid, block or sizes."""
    of_kernel: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for one in launches:
        same = of_kernel[one["family"], one["kernel"]]
        if not any(_shape(one) == _shape(other) for other in same):
            same.append(one)
    return of_kernel


def _named(
    found: Sequence[dict[str, Any]], parts: Mapping[str, str], rng: random.Random
) -> list[dict[str, Any]]:
    """The launches in the order of their names, each with its part and what it finds in L2."""
    warm, clean = round(WARM * len(found)), round(CLEAN * len(found))
    states = ["warm"] * warm + ["clean"] * clean + ["dirty"] * (len(found) - warm - clean)
    rng.shuffle(states)
    numbers = Counter[Key]()
    named = []
    for one, state in zip(found, states, strict=True):
        key = one["family"], one["kernel"]
        numbers[key] += 1
        name = f"{one['family']} {_plain(one['kernel'])} {numbers[key]}"
        named.append({"name": name, "half": parts[one["family"]], "l2": state} | one)
    return sorted(named, key=lambda one: str(one["name"]))


def with_rows(
    part: Part, launches: Sequence[dict[str, Any]], cubins: Path
) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Launches of kernels that are new, by name and code, with the rows that they show.

    Earlier parts are compared by the machine code of them that is in `cubins`.
    """
    earlier = before(part)
    symbols: dict[str, Key] = {one.symbol: (one.family, one.symbol) for one in earlier}
    there = [one for one in earlier if (cubins / one.cubin).exists()]
    codes: dict[str, Key] = {_text_of(one.code(cubins)): (one.family, one.symbol) for one in there}
    for one in launches:
        key = one["family"], one["kernel"]
        if symbols.setdefault(one["kernel"], key) != key:
            continue
        kernel = Kernel.from_image((cubins / one["cubin"]).read_bytes(), one["kernel"])
        if codes.setdefault(_text_of(kernel), key) != key:
            continue
        arrays = [rule["array"] for rule in one["parameters"] if "array" in rule]
        size = sum(rule["count"] * LENGTHS[rule["type"]] for rule in arrays)
        yield one, rows_of(kernel.instructions, one["grid"], one["block"], size)


def _text_of(kernel: Kernel) -> str:
    """The opcodes in their order. Copies of a kernel differ in registers and constants."""
    return " ".join(".".join([one.opcode, *one.modifiers]) for one in kernel.instructions)


def _shape(one: dict[str, Any]) -> tuple[Any, ...]:
    sizes = [rule["array"]["count"] for rule in one["parameters"] if "array" in rule]
    return tuple(one["grid"]), tuple(one["block"]), one["shared"], tuple(sizes)


def _plain(symbol: str) -> str:
    """The name in a mangled symbol, with a mark of the rest, which tells instances apart."""
    from zlib import crc32

    match = re.match(r"_Z(?:N\d*)?(?:L)?(\d+)", symbol)
    if match is None:
        return symbol
    name = symbol[match.end() : match.end() + int(match[1])]
    return f"{name}.{crc32(symbol.encode()) & 0xFFFF:04x}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=PARTS, default="first", help="whose list is drawn")
    chosen = parser.parse_args(argv)
    rows = map(json.loads, (chosen.folder / "captured.jsonl").read_text().splitlines())
    launches = [one for one in rows if "left_out" not in one and not EXCLUDED.search(one["kernel"])]
    launches.sort(key=lambda one: json.dumps(one, sort_keys=True))
    if chosen.part in HALVES:
        seed, found = SEED, drawn(launches)
    else:
        shown = list(with_rows(chosen.part, launches, chosen.folder / "cubins"))
        of_kernel: dict[Key, list[Row]] = {}
        for one, of in shown:
            of_kernel.setdefault((one["family"], one["kernel"]), of)
        launches = [one for one, _ in shown]
        seed, found = SEEDS[chosen.part], drawn_by_rows(chosen.part, launches, of_kernel)
    path = list_of(chosen.part)
    path.parent.mkdir(exist_ok=True)
    recordings.write(path, {"seed": seed, "launches": found})
    kernels = {(one["family"], one["kernel"]) for one in found}
    families = {one["family"] for one in found}
    print(
        f"{len(found)} launches of {len(kernels)} kernels of {len(families)} programs, of "
        f"{len(launches)} that may be drawn; parts {Counter(one['half'] for one in found)}, L2 "
        f"{Counter(one['l2'] for one in found)}"
    )
    for row, count in Counter(row for one in found for row in one.get("rows", [])).most_common():
        print(f"{row}: {count}")


if __name__ == "__main__":
    main()
