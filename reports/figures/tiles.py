"""What if: tiles of other sizes, on every device of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from analysis import what_if
from analysis.devices import DEVICES, Device
from analysis.problem import Gemm
from analysis.result import Profile
from analysis.what_if import Outcome
from reports import style, text

TITLE_OF_WIDTHS = "What if: the width of a square tile"
READING_OF_WIDTHS = (
    "One thread per element, tiles of A and B in shared memory, by closed form (theory). A tile "
    "twice as wide loads every element half as often: intensity and the bandwidth's ceiling double "
    "until FP32's is reached. Wider than 32 is impossible: a block has at most 1,024 threads. The "
    "profile's device is drawn thick, the others thin; their names are in the legend and under the "
    "pointer. Loads are taken from DRAM, uncached, as the source texts do."
)
TITLE_OF_THREADS = "What if: block tile and thread tile"
READING_OF_THREADS = (
    "Choose a device above the plot. A row is the square tile of C of a block, a column that of a "
    f"thread, phases {what_if.DEPTH} deep (theory). Each cell says the ceiling over uncached "
    "loads in TFLOP/s, FLOP per byte, shared memory, and the occupancy at most: registers are "
    "counted as the accumulators and one fragment of each operand, and a compiler takes more. The "
    "deeper the blue, the nearer to FP32's peak. A dash: no block fits, and the pointer says why."
)

# Okabe and Ito's; a dash goes with each colour
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_DASHES = ("solid", "dash", "dot", "dashdot")


def devices(profile: Profile) -> tuple[Device, ...]:
    """Every device of the database, the profile's own (as its driver describes it) first."""
    others = (one for key, one in DEVICES.items() if key != profile.device.key)
    return (profile.device, *others)


# The width of a square tile.

_Quantity = tuple[str, Callable[[Outcome], float | None], style.Part]
_QUANTITIES: tuple[_Quantity, ...] = (
    (
        "ceiling, FLOP/s",
        lambda one: one.attainable_flop_per_s,
        {"yaxis.type": "log", "yaxis.tickformat": "~s"},
    ),
    (
        "intensity, FLOP per byte",
        lambda one: one.flop_per_byte,
        {"yaxis.type": "log", "yaxis.tickformat": ""},
    ),
    (
        "occupancy at most",
        lambda one: one.occupancy,
        {"yaxis.type": "linear", "yaxis.tickformat": ".0%"},
    ),
    (
        "shared memory per block, bytes",
        lambda one: one.shared_bytes,
        {"yaxis.type": "log", "yaxis.tickformat": ","},
    ),
)


def widths(profile: Profile, shape: Gemm) -> go.Figure:
    """A line per device over the width of the tile; buttons choose the quantity."""
    found = [(one, what_if.square_tiles(shape, one)) for one in devices(profile)]
    name, value, _ = _QUANTITIES[0]
    return go.Figure(
        data=[_line(place, *one, value) for place, one in enumerate(found)],
        layout=style.layout(
            f"{TITLE_OF_WIDTHS}, {text.shape(shape)}",
            height=600,
            xaxis=style.axis(
                "width of the tile, threads", type="log", tickvals=list(what_if.TILES)
            ),
            yaxis=style.axis(name, type="log", tickformat="~s", dtick=1),
            updatemenus=style.menu(0, [_choice(found, quantity) for quantity in _QUANTITIES]),
        ),
    )


def _choice(found: Sequence[tuple[Device, Sequence[Outcome]]], of: _Quantity) -> style.Choice:
    title, value, changes = of
    y = [[value(one) for one in outcomes] for _, outcomes in found]
    dtick = 1 if changes["yaxis.type"] == "log" else None
    return (
        title,
        {"y": y},
        {"yaxis.title.text": title, "yaxis.dtick": dtick, "yaxis.autorange": True, **changes},
    )


def _line(
    place: int,
    device: Device,
    outcomes: Sequence[Outcome],
    value: Callable[[Outcome], float | None],
) -> style.Part:
    colour = _COLOURS[(place - 1) % len(_COLOURS)] if place else style.INK
    return style.scatter(
        "lines+markers",
        list(what_if.TILES),
        [value(one) for one in outcomes],
        [_about(device, one) for one in outcomes],
        name=style.plain(device.name),
        line={
            "color": colour,
            "width": 1.5 if place else 4,
            "dash": _DASHES[place // len(_COLOURS) % len(_DASHES)],
        },
        marker={"size": 6 if place else 9, "symbol": style.SYMBOLS[place % len(style.SYMBOLS)]},
    )


def _about(device: Device, one: Outcome) -> str:
    tiling = one.tiling
    of_thread = f", {tiling.thread_m} × {tiling.thread_n} per thread"
    return style.hover(
        f"{device.name}: {tiling.block_m} × {tiling.block_n} per block"
        f"{of_thread if tiling.thread_m > 1 else ''}",
        f"ceiling {text.flop_per_s(one.attainable_flop_per_s)}",
        f"{text.flop_per_byte(one.flop_per_byte)} of global loads",
        f"{text.size(one.shared_bytes)} shared memory, {one.threads_per_block:,} threads per block",
        f"at least {one.least_registers} registers per thread",
        f"occupancy at most {text.percent(one.occupancy)}, by {text.listing(one.limiters)}"
        if one.occupancy is not None
        else "",
        *style.broken(one.reason),
    )


# The tile of a block and that of a thread.


def threads(profile: Profile, shape: Gemm) -> go.Figure:
    """A grid of ceilings, one device at a time, with a menu of devices."""
    found = [(one, what_if.thread_tiles(shape, one)) for one in devices(profile)]
    first = found[0]
    return go.Figure(
        data=[_grid(*first)],
        layout=style.layout(
            f"{TITLE_OF_THREADS}, {text.shape(shape)}",
            height=520,
            xaxis=_tiles("tile of C of a thread", what_if.THREADS),
            yaxis=_tiles("tile of C of a block", what_if.BLOCKS),
            updatemenus=style.menu(
                0,
                [
                    (
                        device.name,
                        {
                            name: [values]
                            for name, values in _grid(device, rows).items()
                            if name in ("z", "text", "hovertext")
                        },
                        {},
                    )
                    for device, rows in found
                ],
            ),
        ),
    )


def _tiles(title: str, sizes: Sequence[int]) -> style.Part:
    return style.axis(
        title,
        tickmode="array",
        tickvals=list(range(len(sizes))),
        ticktext=[f"{size} × {size}" for size in sizes],
        showgrid=False,
    )


def _grid(device: Device, rows: Sequence[Sequence[Outcome]]) -> style.Part:
    """Shares of the peak as colour; what they are stands in the cells."""
    return {
        "type": "heatmap",
        "z": [[_share(one, device) for one in row] for row in rows],
        "zmin": 0,
        "zmax": 1,
        "text": [[_cell(one) for one in row] for row in rows],
        "texttemplate": "%{text}",
        "textfont": {"size": 10, "color": "#1b1f24"},
        "xgap": 2,
        "ygap": 2,
        # no deeper than dark text is easily read on: 7 to 1
        "colorscale": [[0, "#f1f5fa"], [1, "#7fb0dc"]],
        "showscale": False,  # a bar would take a third of a telephone
        "hoverinfo": "text",
        "hovertext": [[_about(device, one) for one in row] for row in rows],
    }


def _share(one: Outcome, device: Device) -> float | None:
    """None where no block fits."""
    if one.occupancy is None:
        return None
    return one.attainable_flop_per_s / device.fp32_flop_per_s


def _cell(one: Outcome) -> str:
    if one.occupancy is None:
        return text.ABSENT
    return "<br>".join(
        (
            f"{one.attainable_flop_per_s / 1e12:.1f} T",
            f"{text.count(one.flop_per_byte)} F/B",
            text.size(one.shared_bytes),
            f"≤ {one.occupancy:.0%}",
        )
    )
