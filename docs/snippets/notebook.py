"""A notebook executed: its outputs anew, and where they are not those that it holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from docs.snippets.exchanges import matches, printed_lines
from docs.snippets.pages import ROOT, PageError, name_of
from docs.snippets.session import MOST_SECONDS, environment

NOTEBOOKS = (ROOT / "docs" / "notebook.ipynb",)
FIGURE = "application/vnd.plotly.v1+json"


def executed(path: Path) -> Any:
    """The notebook with the outputs of its code, and nothing that differs from run to run."""
    notebook = read(path)
    with tempfile.TemporaryDirectory() as scratch:
        client = NotebookClient(
            notebook,
            timeout=MOST_SECONDS,
            resources={"metadata": {"path": scratch}},
            kernel_name="python3",
            shutdown_kernel="immediate",  # it has nothing to save
        )
        seen = environment(Path(scratch) / "data", gpu=False)
        try:
            client.execute(env=seen | {"PLOTLY_RENDERER": "plotly_mimetype"})
        except CellExecutionError as error:
            raise PageError(f"{name_of(path)}: {error}") from error
    for cell in code_cells(notebook):
        cell.metadata.clear()
        cell.outputs = [_plain(output) for output in cell.outputs]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def read(path: Path) -> Any:
    """The notebook that a file holds."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def write(notebook: Any, path: Path) -> None:
    """Keep the notebook with the text that it prints; whoever shows it draws its figures anew."""
    for cell in code_cells(notebook):
        cell.outputs = [one for one in cell.outputs if FIGURE not in one.get("data", {})]
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _plain(output: Any) -> Any:
    """Output reduced to its figure, or to its text if it is anything else."""
    if output.output_type in ("display_data", "execute_result"):
        kind = FIGURE if FIGURE in output.data else "text/plain"
        output.data = {kind: output.data[kind]}
        output.metadata = {}
    if output.output_type == "execute_result" and FIGURE in output.data:
        output.execution_count = None
    return output


def text_of(cell: Any) -> tuple[str, ...]:
    """All that a cell prints, and the value of its last line."""
    printed = (
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    )
    return printed_lines("".join(printed))


def differences(kept: Any, made: Any) -> Iterator[str]:
    """Cells whose text differs from the printed text; figures are not compared."""
    pairs = zip(code_cells(kept), code_cells(made), strict=True)
    for number, (cell, anew) in enumerate(pairs, start=1):
        if not matches(text_of(cell), text_of(anew)):
            lines = ("shown:", *text_of(cell), "printed:", *text_of(anew))
            yield "\n".join((f"code cell {number}: {cell.source}", *lines))
