"""The command `list`: it lists the known variants and devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli.options import Json
from toolkit.cli.output import print_json
from toolkit.cli.terminal import out, rich_table

if TYPE_CHECKING:
    from analysis.devices import Device
    from kernels.variant import Reference, Variant


class Listed(StrEnum):
    variants = "variants"
    devices = "devices"


def list_(
    kind: Annotated[
        Listed | None, typer.Argument(help="What to list.", show_default="both")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the known variants and devices."""
    from analysis.devices import DEVICES
    from kernels import LADDER, REFERENCES

    if as_json:
        print_json(_listing(kind))
        return
    if kind in (None, Listed.variants):
        print_variants(LADDER, REFERENCES)
    if kind in (None, Listed.devices):
        print_devices(list(DEVICES.values()))


def _listing(kind: Listed | None) -> dict[str, Any]:
    from analysis.devices import DEVICES
    from kernels import LADDER, REFERENCES

    listing: dict[str, Any] = {}
    if kind in (None, Listed.variants):
        listing["variants"] = [
            {
                "name": variant.name,
                "rung": variant.rung,
                "title": variant.title,
                "idea": variant.idea,
                "source": variant.file,
                "entry": variant.entry,
                "parameters": {name: asdict(p) for name, p in variant.parameters.items()},
                "constraints": [constraint.text for constraint in variant.constraints],
            }
            for variant in LADDER
        ] + [{"name": r.name, "rung": None, "title": r.title, "idea": r.idea} for r in REFERENCES]
    if kind in (None, Listed.devices):
        listing["devices"] = [asdict(device) for device in DEVICES.values()]
    return listing


def print_variants(variants: Sequence[Variant], references: Sequence[Reference]) -> None:
    from reports.sections.table import plain_table

    rows = [
        [
            str(variant.rung),
            variant.name,
            variant.idea,
            "; ".join(
                f"{name} = {', '.join(map(str, p.legal))} ({p.default})"
                for name, p in variant.parameters.items()
            ),
        ]
        for variant in variants
    ]
    rows += [["", reference.name, reference.idea, ""] for reference in references]
    titles = (("rung", "", True), "variant", "idea", "parameters (default)")
    title = "variants (sources: kernels/sgemm/NUMBER_NAME.cu)"
    out.print(rich_table(plain_table(titles, rows), title=title))


def print_devices(devices: Sequence[Device]) -> None:
    from reports import text
    from reports.sections.table import plain_table

    numbers = ((title, "", True) for title in ("SMs", "FP32", "DRAM", "memory"))
    rows = (
        [
            device.key,
            device.name,
            device.sm_arch,
            str(device.sm_count),
            text.flop_per_s(device.fp32_flop_per_s),
            text.bytes_per_s(device.dram_bytes_per_s),
            text.size(device.dram_bytes),
        ]
        for device in devices
    )
    out.print(rich_table(plain_table(("key", "name", "arch", *numbers), rows), title="devices"))
