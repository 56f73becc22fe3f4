"""The command `check`: it says what is wrong with a kernel."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit import __version__
from toolkit.cli.errors import FAILED, one_line_errors
from toolkit.cli.launch_results import check_page
from toolkit.cli.option_groups import takes_options
from toolkit.cli.options import RESULTS, LaunchOptions, Page
from toolkit.cli.output import print_json, write
from toolkit.cli.printed import print_printed
from toolkit.cli.terminal import note, say

if TYPE_CHECKING:
    from toolkit.cli.call import Call
    from toolkit.execution.sanitizer import Checked

SCHEMA_VERSION = 1


@takes_options
def check(
    launch: LaunchOptions,
    html: Page = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print what was found as JSON instead of lines.",
            rich_help_panel=RESULTS,
        ),
    ] = False,
) -> None:
    """Find errors in a kernel without a GPU: the tools of compute-sanitizer, on the CPU.

    memcheck: accesses out of bounds or misaligned. racecheck: hazards on shared memory between
    threads that no barrier, warp synchronization or wait for an asynchronous copy orders, and on
    global memory between blocks. synccheck: barriers that some threads never reach, and masks
    that do not match the executing lanes. initcheck: reads of memory that was never written.

    Arguments are those of simulate. 'f32[64]=unwritten' is an output buffer: a read before the
    first write is an error.

    The exit code is 1 if there are errors.
    """
    with one_line_errors("interrupted: the check is not complete"):
        from toolkit.cli.completed_options import completed
        from toolkit.cli.launch_source import compiled_beside

        options = completed(launch, "check")

        with compiled_beside(options.launch) as compiled:
            from toolkit.cli.parsed_call import call_of
            from toolkit.cli.progress import SimulationProgress

            call = call_of(options, compiled)
            if html:
                check_page(html, call)
            with SimulationProgress(call.source.name, call.needed_bytes(copies=True)) as progress:
                checked = call.check(compiled, progress.advance, progress.announce)
        call = call.as_launched(checked.geometry)
        if html:
            write({html: page(call, checked)})
        if as_json:
            print_json(document(call, checked))
        else:
            print_checked(checked)
            if launch.left_out:
                from toolkit.cli.launch_tables import print_left_out

                print_left_out(compiled.result())
        if checked.findings:
            raise typer.Exit(FAILED)


def print_checked(checked: Checked) -> None:
    """The findings, then the summary."""
    print_printed(checked.printed)
    for finding in checked.findings:
        times = f" ({finding.times:,} times)" if finding.times > 1 else ""
        say(f" {finding.message}{times}", "bold red", lead=f"{finding.tool}:", indent=2)
    for one in checked.notes:
        note(one)
    style = "bold red" if checked.findings else "green"
    say(checked.summary, style)


def page(call: Call, checked: Checked) -> str:
    """HTML page of the check."""
    from reports.pages.check import Action, CheckFinding, CheckReport
    from reports.pages.check import page as report_page

    findings = [
        CheckFinding(
            tool=one.tool,
            kind=one.kind,
            sentence=one.message,
            memory=one.memory,
            number=one.times,
            actions=[
                Action(what=x.what, thread=x.thread, block=x.block, file=x.file, line=x.line)
                for x in one.accesses
            ],
        )
        for one in checked.findings
    ]
    return report_page(
        CheckReport(
            kernel=checked.kernel,
            file=call.file,
            source=call.text,
            architecture=call.arch,
            grid=call.grid,
            block=call.block,
            findings=findings,
            executed_blocks=checked.executed_blocks,
            blocks=checked.blocks,
            tools=checked.tools,
            notes=checked.notes,
            command=_command(call),
        )
    )


def _command(call: Call) -> str:
    """Shell command that repeats the check."""
    return shlex.join(call.asked().words("check", call.arch))


def document(call: Call, checked: Checked) -> dict[str, Any]:
    """Document that --json prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": __version__,
        "source": call.source.name,
        "grid": call.grid,
        "block": call.block,
        "arguments": call.written,
        "arch": call.arch,
        "seed": call.seed,
        **{name: value for name, value in asdict(checked).items() if name != "geometry"},
        "summary": checked.summary,
    }
