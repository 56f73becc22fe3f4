"""Launches that public programs make, recorded without a GPU.

    python -m validation.public_launches.capture FOLDER --programs N [--part fourth]

FOLDER holds `HeCBench`, `polybenchGpu` and `cuda-samples` at the commits of `REPOSITORIES`,
unpacked. Programs are taken in the order that a seed shuffles, compiled with nvcc and run with
`recording_runtime.cpp` in place of the CUDA runtime, with the arguments of their own `make run`,
and with sizes eight times smaller. `--part` takes programs for a later part, which no part before
it has. A second run goes on where the first one ended. `captured.jsonl` gets a line per launch, or
the reason why a program or launch is left out, and `cubins` the machine code.

    python -m validation.public_launches.capture FOLDER --table FILE --programs N --part fifth

takes programs of other repositories. FILE has a line of JSON per program: its `repository` on
GitHub with `commit`, its `name`, the `folder` of its sources below FOLDER, the `compile` command
without its output, and the `arguments` that it is run with.

    python -m validation.public_launches.capture FOLDER --listed [--part first] [--table FILE]

compiles the programs of the list alone, and fills `cubins` without running them. It names those
whose machine code is another one than that of the list, as another version of nvcc writes it.

A launch is eligible if its arguments follow rules (`arguments`), its arrays have 64 KiB to 512 MiB,
it needs no texture, tensor core or cooperative launch, and is no matrix product.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import ToolkitError
from toolkit.machine_code.containers import entries_of
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_names import plain_name
from toolkit.machine_code.kernel_source import kernel_of_machine_code
from validation.public_launches.arguments import LENGTHS, NoRuleError, rule_of
from validation.public_launches.listed import HALVES, PARTS, SEED, SEEDS, Part, before, listed

ARCH = "sm_90"
RUNTIME = Path(__file__).with_name("recording_runtime.cpp")
REPOSITORIES = {
    "HeCBench": ("zjin-lcf/HeCBench", "f27000a5188f8ac79bd43fc95a1b3f890c18823d"),
    "polybenchGpu": ("sgrauerg/polybenchGpu", "5584aaa7d0be810ff5eb0b61c49fb64ecc81ba4c"),
    "cuda-samples": ("NVIDIA/cuda-samples", "c94ff366aed18c797b8a85dfaac7817b0228b420"),
}
# Matrix products, libraries of the host, several GPUs
EXCLUDED = re.compile(
    r"blas|gemm|matmul|matrix-?mul|mma|2mm|3mm|syrk|syr2k|nccl|mpi|cusparse|cudnn|cufft|"
    r"allreduce|p2p|simpleMultiDevice|tensor",
    re.IGNORECASE,
)
LEAST_BYTES, MOST_BYTES = 2**16, 2**29
MOST_THREADS = 2**28
_REFUSED = re.compile(r"\b(?:HMMA|IMMA|DMMA|QGMMA|HGMMA|WGMMA|TEX|TLD|SUST|SULD)\b")
SMALLER, LEAST_SIZE = 8, 512
COMPILE_LIMIT_S, RUN_LIMIT_S = 60, 25
REBUILD_LIMIT_S = 600
OF_FOLDER = b"_INTERNAL_"  # begins names that nvcc makes from the folder of a source
MOST_MEMORY_BYTES = 12 * 2**30


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a repository: its name there, and the folder of its sources."""

    repository: str
    name: str
    folder: Path
    commit: str = ""
    compile: Sequence[str] = ()  #: command without its output; empty: that of the repository
    arguments: Sequence[str] = ()

    @property
    def main(self) -> Path:
        """The executable. Programs of a table may have one folder together."""
        return self.folder / (f"{self.name}.main" if self.compile else "main")

    @property
    def source(self) -> tuple[str, str]:
        """Its repository on GitHub, with the commit."""
        return REPOSITORIES.get(self.repository, (self.repository, self.commit))

    @property
    def root(self) -> Path:
        """The folder of its repository."""
        name = self.repository.rpartition("/")[2]
        return next(one for one in (self.folder, *self.folder.parents) if one.name == name)

    @property
    def key(self) -> str:
        return f"{self.repository.rpartition('/')[2]}.{self.name}"


def programs_of_table(folder: Path, table: Path, part: Part) -> list[Program]:
    """The programs of a table that a part may take, in the order of its seed."""
    used = {one.family for one in before(part)}
    rows = map(json.loads, table.read_text(encoding="utf-8").splitlines())
    found = [Program(**row | {"folder": folder / row["folder"]}) for row in rows]
    return _shuffled([one for one in found if one.name.lower() not in used], SEEDS[part])


def programs(folder: Path, part: Part = "first") -> list[Program]:
    """All programs that may be taken for the two halves, or a later part, in their seed's order."""
    if part in HALVES:
        return _shuffled([*_of_hecbench(folder), *_of_polybench(folder)], SEED)
    used = {one.family for one in before(part)}
    may_be = [*_of_hecbench(folder), *_of_cuda_samples(folder)]
    return _shuffled([one for one in may_be if one.name.lower() not in used], SEEDS[part])


def _shuffled(found: list[Program], seed: int) -> list[Program]:
    found = [one for one in found if not EXCLUDED.search(one.name)]
    random.Random(seed).shuffle(found)
    return found


def _of_hecbench(folder: Path) -> list[Program]:
    return [
        Program(repository="HeCBench", name=one.name.removesuffix("-cuda"), folder=one)
        for one in sorted((folder / "HeCBench" / "src").glob("*-cuda"))
    ]


def _of_polybench(folder: Path) -> list[Program]:
    return [
        Program(repository="polybenchGpu", name=one.name, folder=one)
        for one in sorted((folder / "polybenchGpu" / "CUDA").iterdir())
        if one.is_dir()
    ]


def _of_cuda_samples(folder: Path) -> list[Program]:
    return [
        Program(repository="cuda-samples", name=one.name, folder=one)
        for one in sorted((folder / "cuda-samples" / "Samples").glob("*/*"))
        if any(one.glob("*.cu"))
    ]


def capture(program: Program, runtime: Path, cubins: Path) -> Iterator[dict[str, Any]]:
    """The launches of a program, or the reason why there are none."""
    name = {"repository": program.repository, "program": program.name}
    main, compiled = _compiled(program)
    if main is None:
        yield name | {"left_out": f"not compiled: {compiled}"}
        return
    try:
        kernels = dict(_kernels(main))
    except ToolkitError as error:
        yield name | {"left_out": f"machine code not read: {error}"}
        return
    made = program.main.with_name(f"{program.main.name}.recorded")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    table = made / "table"
    sizes = {symbol: [one.size for one in kernel.parameters] for symbol, kernel in kernels.items()}
    words = ([symbol, len(found), *found] for symbol, found in sizes.items())
    table.write_text("".join(f"{' '.join(map(str, line))}\n" for line in words))
    environment = os.environ | {
        "LD_PRELOAD": str(runtime),
        "RECORD_FOLDER": str(made),
        "RECORD_TABLE": str(table),
    }
    launches = made / "launches.jsonl"
    found: list[dict[str, Any]] = []
    for asked in _asked(program):
        launches.unlink(missing_ok=True)
        _run([str(main), *asked], program.folder, RUN_LIMIT_S, environment)
        for line in launches.read_text().splitlines() if launches.exists() else []:
            with suppress(ValueError):  # the program was ended while it wrote
                found.append({"program_arguments": " ".join(asked)} | json.loads(line))
    if not found:
        yield name | {"left_out": "made no launch here"}
    for launch in found:
        kernel = kernels[str(launch["kernel"])]
        try:
            one = _listed(program, launch, kernel)
        except NoRuleError as error:
            yield name | {"left_out": f"{launch['kernel']}: {error}"}
            continue
        (cubins / one["cubin"]).write_bytes(kernel.image)
        yield one


def _listed(program: Program, captured: dict[str, Any], kernel: Kernel) -> dict[str, Any]:
    """The launch as the list has it. Raises NoRuleError for one that is not eligible."""
    if captured["cooperative"]:
        raise NoRuleError("a cooperative launch")
    try:
        text = " ".join(one.text for one in kernel.instructions)
    except ToolkitError as error:
        raise NoRuleError(str(error)) from error
    if _REFUSED.search(text) or kernel.unsupported:
        raise NoRuleError("tensor cores, textures, or refused")
    grid, block = captured["grid"], captured["block"]
    threads = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]
    if not 32 <= threads <= MOST_THREADS:
        raise NoRuleError("threads")
    declared = kernel.declared or (None,) * len(kernel.parameters)
    parameters, total = [], 0
    for one, of in zip(captured["parameters"], declared, strict=True):
        if one.get("pointer_inside"):
            raise NoRuleError("a pointer in a struct")
        if "content" in one:
            rule = rule_of(one["content"], one["length"], of)
            total += rule["count"] * LENGTHS[rule["type"]]
            parameters.append({"array": rule})
        elif of is not None and of.pointer:
            raise NoRuleError("a null pointer")
        else:
            parameters.append({"value": one["bytes"]})
    if not LEAST_BYTES <= total <= MOST_BYTES:
        raise NoRuleError("bytes")
    own = {one.name for one in kernel.constants} | {one.name for one in kernel.variables}
    symbols = {
        name: _rule_of_symbol(one)
        for name, one in captured["symbols"].items()
        if any(name == symbol or f"{len(name)}{name}" in symbol for symbol in own)
    }
    repository, commit = program.source
    return {
        "repository": repository,
        "commit": commit,
        "file": _file_of(program, kernel),
        "program_arguments": captured["program_arguments"],
        "family": program.name.lower(),
        "kernel": captured["kernel"],
        "cubin": _cubin_name(program, kernel.image),
        "grid": grid,
        "block": block,
        "shared": captured["shared"],
        "parameters": parameters,
        "symbols": symbols,
    }


def _rule_of_symbol(described: dict[str, Any]) -> dict[str, Any]:
    content, length = described["content"], described["length"]
    if content.get("zero"):
        return {"type": "u8", "count": length, "kind": "zero"}
    for kind in ("f32", "i32", "u8"):
        found = content.get(kind)
        if found and not found["odd"]:
            whole = kind[0] in "iu"
            low, high = (int(found[end]) if whole else found[end] for end in ("low", "high"))
            rule = {"type": kind, "count": found["count"], "kind": "uniform"}
            return rule | {"low": low, "high": high}
    raise NoRuleError("content of a variable")


def _cubin_name(program: Program, image: bytes) -> str:
    return f"{program.key}.{hashlib.sha256(image).hexdigest()[:12]}.cubin"


def _kernels(main: Path) -> Iterator[tuple[str, Kernel]]:
    content = main.read_bytes()
    for symbol in dict.fromkeys(one for entry in entries_of(content) for one in entry.kernels):
        try:
            yield symbol, kernel_of_machine_code(content, symbol, target=ARCH)
        except ToolkitError:
            continue


def _file_of(program: Program, kernel: Kernel) -> str:
    """The source file, in its repository, that defines the kernel."""
    root = program.root
    plain = re.sub(r"[<(].*", "", plain_name(kernel.symbol)).split("::")[-1]
    for path in sorted(program.folder.rglob("*.cu*")) + sorted(program.folder.rglob("*.h*")):
        if path.is_file() and re.search(
            rf"__global__[^;{{]*\b{re.escape(plain)}\s*\(", path.read_text(errors="replace")
        ):
            return path.relative_to(root).as_posix()
    return program.folder.relative_to(root).as_posix()


def _asked(program: Program) -> list[list[str]]:
    """Arguments of the program: those of `make run`, and the same with smaller sizes."""
    if program.compile:
        return [list(program.arguments)]
    makefile = program.folder / "Makefile"
    run = re.compile(r"^run:.*\n\t.*?(?:\./)?(?:\$\(program\)|main)(?= |$)(.*)$", re.MULTILINE)
    found = run.search(makefile.read_text(errors="replace")) if makefile.exists() else None
    if program.repository != "HeCBench" or found is None:
        return [[]]
    asked = found[1].split()
    is_size = [one.isdigit() and int(one) >= LEAST_SIZE for one in asked]
    smaller = [
        str(int(one) // SMALLER) if large else one
        for one, large in zip(asked, is_size, strict=True)
    ]
    return [asked, smaller] if smaller != asked else [asked]


def _compiled(program: Program, limit_s: int = COMPILE_LIMIT_S) -> tuple[Path | None, str]:
    environment = os.environ | {"NVCC_APPEND_FLAGS": "-cudart shared"}
    if program.compile:
        command = [*program.compile, "-o", program.main.name]
        text = _run(command, program.folder, limit_s, environment)
    elif program.repository == "HeCBench":
        text = _run(["make", f"ARCH={ARCH}"], program.folder, limit_s, environment)
    elif program.repository == "cuda-samples":
        sources = sorted([*program.folder.glob("*.cu"), *program.folder.glob("*.cpp")])
        command = ["nvcc", "-O3", "-std=c++17", f"-arch={ARCH}", "-I", "../../../Common"]
        command += ["-o", "main", *(one.name for one in sources)]
        text = _run(command, program.folder, limit_s, environment)
    else:
        source = next(program.folder.glob("*.cu"), None)
        renamed = "-DcudaThreadSynchronize=cudaDeviceSynchronize"  # the name of CUDA 12 and before
        command = ["nvcc", "-O3", f"-arch={ARCH}", renamed, "-o", "main", str(source)]
        text = _run(command, program.folder, limit_s, environment)
    main = program.main
    errors = [line for line in text.splitlines() if "error" in line or "fatal" in line]
    return (main, "") if main.exists() else (None, (errors or ["no program"])[0][:160])


def _run(command: list[str], folder: Path, limit_s: int, environment: dict[str, str]) -> str:
    started = subprocess.Popen(
        ["prlimit", f"--as={MOST_MEMORY_BYTES}", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return started.communicate(timeout=limit_s)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        return started.communicate()[0].decode(errors="replace") + "\nerror: time is up"


def rebuild(
    folder: Path, part: Part | None, workers: int, table: Path | None = None
) -> Iterator[str]:
    """Writes the machine code of the list, and names what could not be made again."""
    wanted: dict[str, set[str]] = {}
    for one in listed(part):
        key = one.cubin.removesuffix(".cubin").rpartition(".")[0]
        wanted.setdefault(key, set()).add(one.cubin)
    every = [*_of_hecbench(folder), *_of_polybench(folder), *_of_cuda_samples(folder)]
    if table and part:
        every += programs_of_table(folder, table, part)
    with ProcessPoolExecutor(workers) as pool:
        begun = [
            pool.submit(_rebuilt, program, names, folder / "cubins")
            for program in every
            if (names := wanted.pop(program.key, None))
        ]
        for future in as_completed(begun):
            if why := future.result():
                yield why
    yield from (f"{key}: its sources are not there" for key in wanted)


def _rebuilt(program: Program, names: set[str], cubins: Path) -> str | None:
    """Write the machine code of a program that has these names, or say what could not be made."""
    if all((cubins / name).exists() for name in names):
        return None
    main, why = _compiled(program, REBUILD_LIMIT_S)
    images = {kernel.image for _, kernel in _kernels(main)} if main else set()
    for image in images:
        name = _cubin_name(program, image)
        if name in names:
            (cubins / name).write_bytes(image)
            names.remove(name)
    if len(names) == len(images) == 1 and OF_FOLDER in (image := images.pop()):
        (cubins / names.pop()).write_bytes(image)
        return f"{program.key}: with other names of its own variables, which hold its folder"
    if names:
        return f"{program.key}: {why or 'other machine code than that of the list'}"
    return None


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--programs", type=int, default=0, help="how many of the order")
    parser.add_argument("--listed", action="store_true", help="only the machine code of the list")
    parser.add_argument("--part", choices=PARTS, help="to take programs for, or to compile")
    parser.add_argument("--table", type=Path, help="programs of other repositories")
    parser.add_argument("--repository", choices=REPOSITORIES, help="only programs of this one")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=3600.0, help="of all of them")
    chosen = parser.parse_args(argv)
    if chosen.table and chosen.part not in SEEDS:
        parser.error(f"--table needs --part {' or '.join(SEEDS)}")
    folder, ends = chosen.folder, time.monotonic() + chosen.limit_s
    cubins = folder / "cubins"
    cubins.mkdir(exist_ok=True)
    if chosen.listed:
        for line in rebuild(folder, chosen.part, chosen.workers, chosen.table):
            print(line, flush=True)
        return
    runtime = folder / "runtime.so"
    command = ["nvcc", "-O2", "-shared", "-Xcompiler", "-fPIC", "-cudart", "none"]
    subprocess.run([*command, "-o", runtime, RUNTIME], check=True)
    record = folder / "captured.jsonl"
    text = record.read_text() if record.exists() else ""
    known = {one.get("program", one.get("family")) for one in map(json.loads, text.splitlines())}
    part: Part = chosen.part or "first"
    ordered = (
        programs_of_table(folder, chosen.table, part) if chosen.table else programs(folder, part)
    )
    wanted = [
        one
        for one in ordered[: chosen.programs]
        if not {one.name, one.name.lower()} & known and chosen.repository in (None, one.repository)
    ]
    with ProcessPoolExecutor(chosen.workers) as pool, record.open("a") as out:
        begun = [pool.submit(_lines, one, runtime, cubins) for one in wanted]
        with suppress(TimeoutError):
            for future in as_completed(begun, max(0.0, ends - time.monotonic())):
                out.write(future.result())
                out.flush()
        left = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in left:
            process.kill()
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    print(f"{sum('left_out' not in row for row in rows)} launches, {len(wanted)} programs asked")


def _lines(program: Program, runtime: Path, cubins: Path) -> str:
    try:
        return "".join(f"{json.dumps(one)}\n" for one in capture(program, runtime, cubins))
    except Exception as error:  # one program must not end the others
        why = f"{type(error).__name__}: {error}"
        return json.dumps({"program": program.name, "left_out": why}) + "\n"


if __name__ == "__main__":
    main()
