"""The phases of a small tiled product: who loads which element, and who reads it afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.result import TileLoad, TilePhases, TileRead
from reports import style, text
from reports.table import Table, plain_table

TITLE = "A tiled product, phase by phase"
READING = (
    "Move the slider. Each square is an element of A or B. While a phase loads, the coloured ones "
    "are copied to shared memory, each by the thread that stands in it; while it reads, the number "
    "says how many threads of the block take the element from there: what is loaded once serves "
    "several threads, which is all that tiling is for. Traced from the kernel's own requests on "
    "the simulator, not drawn by hand."
)
MATRICES = ("A", "B")
# Okabe and Ito's, by thread; a thread's name stands in its squares too
THREADS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
IDLE = "rgba(128,128,128,0.18)"
GAP = 1.2  # of a square, between the matrices


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A position of the slider: squares by (matrix, row, column), and what happens."""

    name: str
    labels: dict[tuple[str, int, int], str]
    colours: dict[tuple[str, int, int], str]
    about: dict[tuple[str, int, int], str]


def figure(phases: TilePhases | None) -> go.Figure:
    """Both matrices, with a slider over loads and reads of every phase."""
    if phases is None:
        return style.empty(TITLE, "No small product was traced: profile with simulation.")
    steps = list(_steps(phases))
    side = phases.extent
    return go.Figure(
        data=[_squares(phases, step, is_shown=place == 0) for place, step in enumerate(steps)],
        layout=style.layout(
            f"{TITLE}, {side} × {side} by tiles of {phases.tile} × {phases.tile}",
            height=430,
            showlegend=False,
            annotations=list(_names(phases)),
            xaxis=style.axis("", visible=False, range=[-0.7, 2 * side + GAP - 0.3]),
            yaxis=style.axis("", visible=False, range=[side - 0.3, -1.2]),
            sliders=[_slider(steps)],
            margin={"l": 32, "r": 32, "t": 48, "b": 8},
        ),
    )


def _steps(phases: TilePhases) -> Iterator[_Step]:
    for phase in range(1 + max(one.phase for one in phases.loads)):
        loads = [one for one in phases.loads if one.phase == phase]
        yield _step(f"phase {phase}: load", loads, _loaded(loads))
        reads = [one for one in phases.reads if one.phase == phase]
        yield _step(f"phase {phase}: read", reads, _read(reads))


Accesses = Sequence[TileLoad] | Sequence[TileRead]


def _by_element(accesses: Accesses) -> dict[tuple[str, int, int], list[int]]:
    found: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for one in accesses:
        found[one.matrix, one.row, one.column].append(one.thread)
    return found


def _loaded(loads: Sequence[TileLoad]) -> dict[tuple[str, int, int], tuple[str, str]]:
    """(label, colour) of each element: the thread that loads it."""
    return {
        element: (f"t{threads[0]}", THREADS[threads[0] % len(THREADS)])
        for element, threads in _by_element(loads).items()
    }


def _read(reads: Sequence[TileRead]) -> dict[tuple[str, int, int], tuple[str, str]]:
    return {
        element: (f"{len(threads)}×", "#4a6fa5") for element, threads in _by_element(reads).items()
    }


def _step(
    name: str, accesses: Accesses, shown: dict[tuple[str, int, int], tuple[str, str]]
) -> _Step:
    verb = "loaded" if name.endswith("load") else "read"
    return _Step(
        name=name,
        labels={element: label for element, (label, _) in shown.items()},
        colours={element: colour for element, (_, colour) in shown.items()},
        about={
            (matrix, row, column): style.hover(
                f"{matrix}[{row}][{column}]",
                f"{verb} by {text.listing([f'thread {thread}' for thread in threads])}",
            )
            for (matrix, row, column), threads in _by_element(accesses).items()
        },
    )


def _squares(phases: TilePhases, step: _Step, *, is_shown: bool) -> style.Part:
    side = phases.extent
    elements = [(m, r, c) for m in MATRICES for r in range(side) for c in range(side)]
    return style.scatter(
        "markers+text",
        [c + (side + GAP) * MATRICES.index(m) for m, _, c in elements],
        [r for _, r, _ in elements],
        [
            step.about.get((m, r, c), style.hover(f"{m}[{r}][{c}]", "not touched"))
            for m, r, c in elements
        ],
        visible=is_shown,
        name=step.name,
        text=[step.labels.get(one, "") for one in elements],
        textfont={"color": "#ffffff", "size": 12},
        marker={
            "symbol": "square",
            "size": 29,
            "color": [step.colours.get(one, IDLE) for one in elements],
            "line": style.ink(1),
        },
    )


def _names(phases: TilePhases) -> Iterator[style.Part]:
    for place, matrix in enumerate(MATRICES):
        yield {
            "text": matrix,
            "x": (phases.extent + GAP) * place,
            "y": -0.85,
            "showarrow": False,
            "font": {"size": 14},
        }


def _slider(steps: Sequence[_Step]) -> style.Part:
    return style.slider(
        0,
        [
            {
                "label": step.name,
                "method": "update",
                "args": [{"visible": [other is step for other in steps]}],
            }
            for step in steps
        ],
        pad={"t": 10},
        currentvalue={"prefix": "", "font": {"size": 14, "color": style.INK}},
    )


def table(phases: TilePhases) -> Table:
    """A row per thread, as the source texts tabulate it: what it loads and reads in each phase."""
    threads = sorted({one.thread for one in phases.loads})
    count = 1 + max(one.phase for one in phases.loads)
    titles = [f"phase {phase}: {what}" for phase in range(count) for what in ("loads", "reads")]
    rows = [
        [
            f"{thread}, C[{phases.row + thread // phases.tile}]"
            f"[{phases.column + thread % phases.tile}]",
            *(
                _elements([o for o in accesses if (o.thread, o.phase) == (thread, phase)])
                for phase in range(count)
                for accesses in (phases.loads, phases.reads)
            ),
        ]
        for thread in threads
    ]
    return plain_table(["thread", *titles], rows)


def _elements(accesses: Sequence[TileLoad | TileRead]) -> str:
    """What a thread accesses, A before B; the order of the instructions is the compiler's."""
    ordered = sorted(accesses, key=lambda o: (o.matrix, o.row, o.column))
    return text.listing([f"{o.matrix}[{o.row}][{o.column}]" for o in ordered])
