"""The list of public launches, drawn by a seed from what `capture` recorded.

    python -m validation.public_launches.draw FOLDER

writes `recorded/list.json`. First one launch of each kernel is drawn, in the order of SEED, then
further ones with another grid or block; a family (a program) has at most MOST_OF_FAMILY. Families,
in the order of SEED, go to the half that has fewer launches. A quarter of the launches finds a warm
L2, an eighth a clean one, the others a dirty one.

A launch that takes less than 5 µs when it is measured is dropped: that is a rule of the list. Any
other that is dropped is named with the reason.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from validation import recordings
from validation.public_launches.capture import EXCLUDED
from validation.public_launches.listed import LIST, SEED

LAUNCHES = 210
MOST_OF_FAMILY, MOST_OF_KERNEL = 8, 4
WARM, CLEAN = 0.25, 0.125


def drawn(launches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The launches of the list, with their halves and what they find in L2."""
    rng = random.Random(SEED)
    of_kernel: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in launches:
        same = of_kernel[one["family"], one["kernel"]]
        if not any(_shape(one) == _shape(other) for other in same):
            same.append(one)
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
    warm, clean = round(WARM * len(found)), round(CLEAN * len(found))
    states = ["warm"] * warm + ["clean"] * clean + ["dirty"] * (len(found) - warm - clean)
    rng.shuffle(states)
    numbers = Counter[tuple[str, str]]()
    named = []
    for one, state in zip(found, states, strict=True):
        key = one["family"], one["kernel"]
        numbers[key] += 1
        name = f"{one['family']} {_plain(one['kernel'])} {numbers[key]}"
        named.append({"name": name, "half": halves[one["family"]], "l2": state} | one)
    return sorted(named, key=lambda one: str(one["name"]))


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
    folder = parser.parse_args(argv).folder
    rows = map(json.loads, (folder / "captured.jsonl").read_text().splitlines())
    launches = [one for one in rows if "left_out" not in one and not EXCLUDED.search(one["kernel"])]
    launches.sort(key=lambda one: json.dumps(one, sort_keys=True))
    found = drawn(launches)
    LIST.parent.mkdir(exist_ok=True)
    recordings.write(LIST, {"seed": SEED, "launches": found})
    kernels = {(one["family"], one["kernel"]) for one in found}
    families = {one["family"] for one in found}
    print(
        f"{len(found)} launches of {len(kernels)} kernels of {len(families)} programs, of "
        f"{len(launches)} that may be drawn; halves {Counter(one['half'] for one in found)}, L2 "
        f"{Counter(one['l2'] for one in found)}"
    )


if __name__ == "__main__":
    main()
