"""What `check` prints: a line for each finding, and one that says what was looked at."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.markup import escape

import toolkit
from toolkit.cli.launch_options import Call
from toolkit.cli.tables import out
from toolkit.execution.sanitizer import Checked, Finding

SCHEMA_VERSION = 1


def print_checked(checked: Checked) -> None:
    """The findings, then the summary."""
    for finding in checked.findings:
        out.print(_line(finding), soft_wrap=True)
    for note in checked.notes:
        out.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
    style = "bold red" if checked.findings else "green"
    out.print(f"[{style}]{escape(checked.summary)}[/]", soft_wrap=True)


def _line(finding: Finding) -> str:
    times = f" ({finding.times:,} times)" if finding.times > 1 else ""
    return f"[bold red]{finding.tool}:[/] {escape(finding.message)}{times}"


def document(call: Call, checked: Checked) -> dict[str, Any]:
    """What --json prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": toolkit.__version__,
        "source": call.source.name,
        "grid": call.grid,
        "block": call.block,
        "arguments": call.written,
        "arch": call.arch,
        "seed": call.seed,
        **asdict(checked),
        "summary": checked.summary,
    }
