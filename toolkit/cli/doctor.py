"""The command `doctor`: it says what is found on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.markup import escape

from toolkit.cli.options import Json
from toolkit.cli.output import print_json
from toolkit.cli.terminal import out, say

if TYPE_CHECKING:
    from toolkit.profiling.doctor import ProbeResult


def doctor(as_json: Json = False) -> None:
    """Show what this machine has, what is missing, and how to install it."""
    from toolkit.profiling.doctor import examine

    findings = examine()
    if as_json:
        print_json([asdict(finding) for finding in findings])
        return
    print_findings(findings)


def print_findings(findings: Sequence[ProbeResult]) -> None:
    styles = {"ok": "green", "problem": "bold red", "missing": "red"}
    for finding in findings:
        style = styles.get(finding.status, "yellow")
        out.print(
            f"[{style}]{finding.status:>16}[/]  [bold]{escape(finding.name)}[/]: "
            f"{escape(finding.detail)}",
            soft_wrap=True,
        )
        if finding.remedy:
            say(f"{'':18}-> {finding.remedy}")
