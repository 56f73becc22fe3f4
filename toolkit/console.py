"""What the commands print: tables and progress on a terminal, through rich."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from analysis.devices import Device
from analysis.result import Profile, Record
from kernels.registry import Reference, Variant
from reports import text
from reports.headline import headline
from reports.ladder import measurement, of_cublas, records_at, shapes, twin
from toolkit.doctor import Finding
from toolkit.progress import Progress

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

STATUS_STYLES = {"ok": "green", "skipped": "yellow", "failed": "bold red"}


class TerminalProgress(Progress):
    """A bar on standard error while a run works; nothing but notices where that is no terminal."""

    def __init__(self) -> None:
        self._bar = Bar(
            TextColumn("{task.fields[stage]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, stage="")
        self._step = ""

    def __enter__(self) -> TerminalProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def stage(self, text: str, steps: int) -> None:
        self._bar.reset(self._task, total=steps, stage=escape(text), description="")

    def step(self, text: str) -> None:
        if self._step:
            self._bar.advance(self._task)
        self._step = text
        self.detail(text)

    def detail(self, text: str) -> None:
        self._bar.update(self._task, description=escape(text))

    def notice(self, text: str) -> None:
        err.print(f"[yellow]note:[/] {escape(text)}", soft_wrap=True)


def print_profile(profile: Profile, recorded: Profile | None) -> None:
    """For every shape: the answer in words, the ladder, and what went wrong."""
    for shape in shapes(profile):
        answer = headline(profile, shape, recorded=recorded)
        records = records_at(profile, shape)
        out.print(f"[bold]{escape(answer.lead)}[/]", soft_wrap=True)
        for point in answer.points:
            out.print(f"  - {escape(point)}", soft_wrap=True)
        out.print()
        out.print(_ladder_table(profile, records, recorded))
        _print_reasons(records)


def _ladder_table(
    profile: Profile, records: Sequence[Record], recorded: Profile | None
) -> Table:
    shape = records[0].shape
    table = Table(title=f"{text.shape(shape)} on {escape(profile.device.name)}", title_justify="left")
    table.add_column("rung", justify="right")
    table.add_column("variant", no_wrap=True)
    table.add_column("time", justify="right")
    table.add_column("rate", justify="right")
    table.add_column("of cuBLAS", justify="right")
    table.add_column("roof (theory)", justify="right")
    table.add_column("limiter (theory)")
    table.add_column("regs", justify="right")
    table.add_column("occupancy", justify="right")
    table.add_column("check")
    for record in records:
        table.add_row(*_ladder_row(profile, record, recorded))
    return table


def _ladder_row(profile: Profile, record: Record, recorded: Profile | None) -> Iterable[str]:
    shown = record if measurement(record) else twin(record, recorded) or record
    measured = measurement(shown)
    style = "" if shown is record else "[dim]"
    theory = record.theory
    yield "" if record.rung is None else str(record.rung)
    yield escape(record.label)
    yield style + text.seconds(measured.median_s if measured else None)
    yield style + text.flop_per_s(measured.flop_per_s if measured else None)
    yield style + (text.ratio(measured.relative_to_cublas.median) if measured and measured.relative_to_cublas else "")
    yield text.flop_per_s(theory.attainable_flop_per_s) if theory else ""
    yield theory.limiter if theory else ""
    yield str(record.resources.registers_per_thread) if record.resources else ""
    yield text.percent(record.occupancy.fraction) if record.occupancy else ""
    yield _check_cell(record)


def _check_cell(record: Record) -> str:
    if record.status != "ok":
        return f"[{STATUS_STYLES[record.status]}]{record.status}[/]"
    if record.check is None:
        return "not run"
    return "[green]ok[/]"


def _print_reasons(records: Iterable[Record]) -> None:
    for record in records:
        if record.reason:
            style = STATUS_STYLES[record.status]
            out.print(
                f"[{style}]{record.status}[/] {escape(record.label)}, "
                f"{text.shape(record.shape)}: {escape(record.reason)}",
                soft_wrap=True,
            )


def print_variants(variants: Sequence[Variant], references: Sequence[Reference]) -> None:
    table = Table(title="variants", title_justify="left")
    for column in ("rung", "name", "idea", "parameters (default)", "source"):
        table.add_column(column)
    for variant in variants:
        parameters = "; ".join(
            f"{name} = {', '.join(map(str, p.legal))} ({p.default})"
            for name, p in variant.parameters.items()
        )
        table.add_row(str(variant.rung), variant.name, variant.idea, parameters, variant.file)
    for reference in references:
        table.add_row("", reference.name, reference.idea, "", "")
    out.print(table)


def print_devices(devices: Sequence[Device]) -> None:
    table = Table(title="devices", title_justify="left")
    for column in ("key", "name", "arch", "SMs", "FP32", "DRAM", "memory"):
        table.add_column(column, justify="left" if column in ("key", "name", "arch") else "right")
    for device in devices:
        table.add_row(
            device.key,
            device.name,
            device.sm_arch,
            str(device.sm_count),
            text.flop_per_s(device.fp32_flop_per_s),
            text.bytes_per_s(device.dram_bytes_per_s),
            text.size(device.dram_bytes),
        )
    out.print(table)


def print_findings(findings: Sequence[Finding]) -> None:
    styles = {"ok": "green", "problem": "bold red", "missing": "red"}
    for finding in findings:
        style = styles.get(finding.status, "yellow")
        out.print(
            f"[{style}]{finding.status:>16}[/]  [bold]{escape(finding.name)}[/]: "
            f"{escape(finding.detail)}",
            soft_wrap=True,
        )
        if finding.remedy:
            out.print(f"{'':18}-> {escape(finding.remedy)}", soft_wrap=True)
