"""The figure and the tables of docs/against_cublas.md of the 300 products, from the recorded run.

python -m benchmarks.product_tables              prints the tables, and draws the figure anew
python -m benchmarks.product_tables RUN.json     records a run of benchmarks.products first

A run with another seed is recorded beside it: products that no constant was fitted on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from math import exp, log, log10
from pathlib import Path
from typing import Any

from analysis.devices import find_device
from kernels.path_times import candidates
from validation import ROOT, recordings
from validation.products.law import SEED, Case, Group, products

RECORDED = ROOT / "validation" / "products" / "recorded" / "h200.json"
OTHERS = RECORDED.with_name("h200_other_seed.json")
FIGURE = ROOT / "docs" / "figures" / "products.svg"
PROTOCOLS = ("back to back", "flushed")
ALLOWED_S = 0.3e-6  # by which a product may be slower, whatever its ratio
COLOURS = {
    "any-layout": "#0072b2",
    "bulk": "#d55e00",
    "few-rows": "#009e73",
    "short-k": "#cc79a7",
}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 860, 420, 56, 44, 28, 12
LEAST, MOST = 0.4, 5.0  # ratios of the figure

Run = dict[str, Any]


def peer_s(times: dict[str, float]) -> float:
    """Time of the fastest of cuBLAS and torch."""
    return min(time_s for name, time_s in times.items() if name != "ours")


def ratio(record: Run, protocol: str) -> float:
    times: dict[str, float] = record[protocol]
    return peer_s(times) / times["ours"]


def lesser(record: Run) -> float:
    """The ratio of the protocol in which it is smaller."""
    return min(ratio(record, protocol) for protocol in PROTOCOLS)


def mean(records: Sequence[Run], protocol: str) -> float:
    """Geometric mean of the ratios."""
    return exp(sum(log(ratio(one, protocol)) for one in records) / len(records))


def passes(record: Run) -> bool:
    """At least 0.95, or at most 0.3 µs slower, in both protocols."""
    return all(
        ratio(record, one) >= 0.95 or record[one]["ours"] - peer_s(record[one]) <= ALLOWED_S
        for one in PROTOCOLS
    )


def path_of(label: str) -> str:
    return label.partition(":")[0]


def regrets(records: Sequence[Run]) -> list[float]:
    """Time of the chosen path, relative to the fastest path that was timed, minus 1."""
    return [
        one["candidates"][one["chosen"]] / min(one["candidates"].values()) - 1
        for one in records
        if one["chosen"] in one["candidates"]
    ]


def recorded(run: Run) -> Run:
    """The part of a run that is kept: the choice, its regret and the times of each product."""
    records = []
    for one in run["records"]:
        kept = {key: one[key] for key in ("name", "sizes", "product", "chosen", *PROTOCOLS)}
        if one["candidates"]:
            kept["regret"] = round(regrets([one])[0], 4)
        records.append(kept)
    seed = run.get("seed", SEED)
    return {"cublas": run["cublas"], "device": run["device"], "seed": seed, "records": records}


def reason(record: Run) -> str:
    """Reason that holds a product back, from its path and its sizes."""
    product = CASES[record["name"]].product
    label = record["chosen"]
    if label.endswith("packed"):
        return "A or B is copied first, which takes the longer the shorter a side of C is"
    if product.multiply_adds < 2**22:
        return "a launch and one round trip to memory, in which cuBLAS's kernel does less"
    if path_of(label) == "few-rows":
        return "reads of B, and one block that adds the sums of its group"
    if product.k <= 256:
        return "first copies and last stores of a block, which no other work hides"
    if "splits" in label:
        return "sums of splits, and copies of 4 bytes"
    return "copies of 4 bytes, and a barrier in each phase"


def cases_of(seed: int) -> dict[str, Case]:
    """The cases of the law by name."""
    return {case.name: case for case in products(seed)}


CASES = cases_of(SEED)


def table(records: Sequence[Run]) -> Iterator[str]:
    yield "| products | | back to back | flushed | at least 0.95, or 0.3 µs | least |"
    yield "|---|---|---|---|---|---|"
    groups = {
        group.value: [r for r in records if CASES[r["name"]].group is group] for group in Group
    }
    for name, some in (groups | {"all": list(records)}).items():
        share = sum(map(passes, some)) / len(some)
        yield (
            f"| {name} | {len(some)} | {mean(some, PROTOCOLS[0]):.3f} | "
            f"{mean(some, PROTOCOLS[1]):.3f} | {share:.0%} | {min(map(lesser, some)):.2f} |"
        )


def worst(records: Sequence[Run], count: int = 20) -> Iterator[str]:
    yield "| product | | path | ours | peer | back to back | flushed | what holds it back |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in sorted(records, key=lesser)[:count]:
        times = one["back to back"]
        ours = f"{times['ours'] * 1e6:.1f} µs"
        yield (
            f"| {one['name']} | {one['product']} | `{one['chosen']}` | {ours} | "
            f"{peer_s(times) * 1e6:.1f} µs | {ratio(one, PROTOCOLS[0]):.2f} | "
            f"{ratio(one, PROTOCOLS[1]):.2f} | {reason(one)} |"
        )


def estimates(records: Sequence[Run], cases: dict[str, Case] = CASES) -> str:
    """Sentence on how far the estimates of the chosen paths are off, by today's constants."""
    device = find_device("h200")
    errors = []
    for one in records:
        product = cases[one["name"]].product
        labels = {make(product, *rest).label: s for s, make, rest in candidates(device, product)}
        errors.append(abs(log(labels[one["chosen"]] / one["back to back"]["ours"])))
    return (
        f"Estimated times of the chosen paths are {exp(sum(errors) / len(errors)) - 1:.1%} off on "
        f"average, by a factor of {exp(max(errors)):.2f} at worst."
    )


def regret(records: Sequence[Run]) -> str:
    """Sentence on the regret of the choices."""
    found = [one["regret"] for one in records if "regret" in one]
    return (
        f"The chosen path takes {sum(found) / len(found):.1%} longer than the fastest path that "
        f"was timed on average, {max(found):.0%} at worst, and at most 15% at "
        f"{sum(one <= 0.15 for one in found)} of {len(found)} products."
    )


def others(run: Run) -> str:
    """Sentences on a run of products of another seed."""
    records = run["records"]
    means = ", ".join(f"{mean(records, one):.3f} {one}" for one in PROTOCOLS)
    share = sum(map(passes, records)) / len(records)
    return (
        f"On {len(records)} products of another seed ({run['seed']}), on which nothing was fitted, "
        f"geometric means are {means}, and {share:.0%} reach 0.95 or lack at most 0.3 µs, the "
        f"least {min(map(lesser, records)):.2f}. {estimates(records, cases_of(run['seed']))} "
        f"{regret(records)}"
    )


def figure(records: Sequence[Run]) -> Iterator[str]:
    """An SVG: the lesser ratio of each product over its multiply-adds, coloured by path."""
    sizes = [log10(CASES[one["name"]].product.multiply_adds) for one in records]
    last = max(sizes)

    def x(size: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * size / last

    def y(value: float) -> float:
        share = log(min(max(value, LEAST), MOST) / LEAST) / log(MOST / LEAST)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    for value in (0.5, 0.7, 0.85, 0.95, 1.0, 1.2, 1.5, 2, 3, 4):
        look = 'stroke="#444"' if value == 1 else 'stroke="#ccc" stroke-dasharray="3 3"'
        at = f'y1="{y(value):.1f}" y2="{y(value):.1f}"'
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" {at} {look}/>'
        yield text(LEFT - 6, y(value) + 4, f"{value:g}", "end")
    for power in range(0, int(last) + 1, 2):
        yield text(x(power), HEIGHT - BOTTOM + 18, f"10^{power}")
    yield text((LEFT + WIDTH) / 2, HEIGHT - 8, "multiply-adds")
    for size, one in zip(sizes, records, strict=True):
        title = f"{one['product']}: {lesser(one):.2f}, {one['chosen']}"
        colour = COLOURS[path_of(one["chosen"])]
        yield (
            f'<circle cx="{x(size):.1f}" cy="{y(lesser(one)):.1f}" r="3" fill="{colour}" '
            f'fill-opacity="0.7"><title>{title}</title></circle>'
        )
    for i, (path, colour) in enumerate(COLOURS.items()):
        across = LEFT + 12 + 110 * i
        yield f'<circle cx="{across}" cy="14" r="4" fill="{colour}"/>'
        yield text(across + 8, 18, path, "start")
    yield "</svg>"


def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, help="run of benchmarks.products to record")
    given = parser.parse_args().run
    if given is not None:
        RECORDED.parent.mkdir(exist_ok=True)
        run = recorded(recordings.read(given))
        recordings.write(RECORDED if run["seed"] == SEED else OTHERS, run)
    records = recordings.read(RECORDED)["records"]
    FIGURE.write_text("\n".join(figure(records)) + "\n", encoding="utf-8")
    print("\n".join(table(records)))
    print()
    print("\n".join(worst(records)))
    print()
    print(estimates(records), regret(records))
    print(others(recordings.read(OTHERS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
