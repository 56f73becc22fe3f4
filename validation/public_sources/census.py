"""Each kernel that a .cu file launches: does it compile and execute as the file stands?

`python -m validation public-sources FOLDER --record FILE.jsonl` takes a folder that holds the
repositories of repositories.toml, each in a folder of its last name. A second run goes on where the
record ends. `--table` prints the record as a table.

Block and shared memory are those of the launch in the file, if it tells them. Arguments are made
up: 2^18 elements behind each pointer, small numbers for values. "Executes" means that no construct
is refused; an access outside of the made-up arrays is a column of its own.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import LaunchError, ToolkitError, UnsupportedError
from toolkit import simulate
from toolkit.launch.element_types import is_real, type_named
from toolkit.launch.host_code import HostLaunch
from toolkit.launch.source_launches import SourceLaunches
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.nvcc import compile_with_nvcc
from toolkit.machine_code.signature import signature
from validation.public_sources.launched import Launched, launched_kernels, side_of
from validation.public_sources.names import candidates

ARCH = "sm_90"
ELEMENTS = 2**18
SHARED_BYTES = 16384
MOST_INSTRUCTIONS = 5_000_000
MOST_NAMES = 3  # instantiations of a template that are tried
_LIMIT = "did not end within"  # in the message of a launch that exceeds them
# What CUDA 13 removed, for nvcc: host code of older files calls it.
REMOVED = ("-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DcudaThreadExit=cudaDeviceReset")
# Why a kernel is counted apart: its code, or what it includes, has one of these.
APART = {
    "cutlass or cute": ("cute/", "cutlass/"),
    "dynamic parallelism": ("cudaLaunchDevice", "cdp"),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """Result for one kernel. Texts are errors, None if there is none."""

    repository: str
    file: str
    kernel: str
    name: str | None
    compile_s: float
    compiles: str | None
    untouched: str | None  # error of nvcc on the file
    left_out: int
    executes: str
    outputs: str
    apart: str | None


def take(
    folder: Path,
    record: Path,
    *,
    only: Sequence[str] = (),
    cubins: Path | None = None,
    includes: Sequence[Path] = (),
    part: tuple[int, int] = (0, 1),
) -> None:
    """Append a row for each kernel that the record lacks.

    `part` (k, n) takes the kernels of every n-th file from file k on: n processes share the work.
    `includes` are folders of headers for nvcc alone, such as PyTorch's.
    """
    known = {(row["repository"], row["file"], row["kernel"]) for row in rows_of(record)}
    if cubins is not None:
        cubins.mkdir(parents=True, exist_ok=True)
    repositories = [
        path
        for path in sorted(folder.iterdir())
        if path.is_dir() and (not only or path.name in only)
    ]
    files = [(one, path) for one in repositories for path in sorted(one.rglob("*.cu"))]
    first, step = part
    for repository, path in files[first::step]:
        file = path.relative_to(repository).as_posix()
        for kernel in launched_kernels(path):
            if (repository.name, file, kernel.name) in known:
                continue
            row = _row(repository, file, kernel, cubins, includes)
            with record.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")


def rows_of(record: Path) -> list[dict[str, Any]]:
    if not record.exists():
        return []
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def _row(
    repository: Path, file: str, kernel: Launched, cubins: Path | None, includes: Sequence[Path]
) -> Row:
    text = kernel.path.read_text(encoding="utf-8", errors="replace")
    options = ["-lineinfo", *_folders(repository, file)]
    of_nvcc = [*options, *(f"-I{one}" for one in includes)]
    untouched, image = _by_nvcc(kernel.path, text, of_nvcc, cubins, f"{repository.name}+{file}")
    symbols = cubin_file(image).kernels if image else []
    folders = [Path(one.removeprefix("-I")) for one in options if one.startswith("-I")]
    side = side_of(kernel.path, text, folders)
    host = SourceLaunches(text, side.file, kernel.path.parent, folders=folders)
    launches = [one for one in host.launches if one.kernel == kernel.name]
    found, error, seconds, name = None, None, 0.0, None
    for one in list(dict.fromkeys(candidates(kernel, side, symbols, launches)))[:MOST_NAMES]:
        started = time.perf_counter()
        try:
            found = compile_cubin(
                text,
                name=kernel.path.name,
                kernel=one,
                arch=ARCH,
                options=options,
                folder=kernel.path.parent,
            )
            name, error, seconds = one, None, time.perf_counter() - started
            break
        except ToolkitError as refused:
            error = error or str(refused)
    executes, outputs = "not compiled", "-"
    if found is not None:
        sources = "\n".join(one.decode() for one in side.contents.values())
        found = replace(found, source=sources)
        twin = _twin(found, image, symbols)
        made = found.declared or signature(sources, kernel.name)
        launch = next((one for one in launches if one.name == name), None)
        executes, first = _executed(found, made, launch)
        outputs = "no cubin of nvcc" if twin is None else _compared(first, twin, made, launch)
    return Row(
        repository=repository.name,
        file=file,
        kernel=kernel.name,
        name=name,
        compile_s=seconds,
        compiles=error,
        untouched=untouched,
        left_out=len(found.left_out) if found else 0,
        executes=executes,
        outputs=outputs,
        apart=_apart(side, kernel.name, error, executes),
    )


def _folders(repository: Path, file: str) -> list[str]:
    """Folders of headers that the repository's own build names.

    gpu-rodinia takes helper_cuda.h from the samples, where they are unpacked beside it. LeetCUDA
    has CUTLASS as a submodule, where it is unpacked.
    """
    samples = repository.parent / "cuda-samples"
    places = {
        "cuda-samples": [repository / "Common"],
        "gpu-rodinia": [samples / "Common"],
        "LeetCUDA": [
            repository.joinpath(*Path(file).parts[:2], "utils"),
            repository / "third-party/cutlass/include",
        ],
    }
    return [f"-I{one}" for one in places.get(repository.name, []) if one.is_dir()]


def _by_nvcc(
    path: Path, text: str, options: Sequence[str], cubins: Path | None, key: str
) -> tuple[str | None, bytes | None]:
    """The error of nvcc, or the cubin of the untouched file, which `cubins` keeps."""
    kept = cubins / key.replace("/", "+") if cubins else None
    if kept and (ready := kept.with_name(f"{kept.name}.cubin")).exists():
        return None, ready.read_bytes()
    if kept and (failed := kept.with_name(f"{kept.name}.err")).exists():
        return failed.read_text(encoding="utf-8"), None
    try:
        image, _ = compile_with_nvcc(
            text,
            name=path.name,
            folder=path.parent,
            arch=ARCH,
            options=[*options, *REMOVED],
        )
    except ToolkitError as error:
        if kept:
            failed.write_text(str(error), encoding="utf-8")
        return str(error), None
    if kept:
        ready.write_bytes(image)
    return None, image


def _twin(kernel: Kernel, image: bytes | None, symbols: Sequence[str]) -> Kernel | None:
    """The same kernel in nvcc's cubin."""
    if image is None or kernel.symbol not in symbols:
        return None
    try:
        return replace(Kernel.from_image(image, kernel.symbol), source=kernel.source)
    except ToolkitError:
        return None


def _executed(kernel: Kernel, declared: Any, launch: HostLaunch | None) -> tuple[str, Any]:
    """Outcome of an execution, and its outputs."""
    grid, block = _geometry(kernel)
    block = launch.block if launch and launch.block else block
    shared = launch.shared_bytes if launch else None
    try:
        found = simulate(
            kernel,
            grid=grid,
            block=block,
            arguments=_arguments(kernel, declared),
            dynamic_shared_bytes=shared or SHARED_BYTES,
            max_instructions=MOST_INSTRUCTIONS,
            predict=False,
            workers=1,  # blocks that race write in the same order
        )
    except UnsupportedError as error:
        return f"refused: {error}", None
    except LaunchError as error:
        return f"{'too long' if _LIMIT in str(error) else 'fault'}: {error}", None
    except ToolkitError as error:
        return f"error: {error}", None
    return "executes", found.outputs


def _geometry(kernel: Kernel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    text = kernel.source or ""
    block = kernel.required_block or ((16, 16) if "threadIdx.y" in text else (256,))
    if kernel.max_threads and int(np.prod(block)) > kernel.max_threads:
        block = (kernel.max_threads,)
    axes = zip(kernel.cluster, "xyz", strict=True)
    return tuple((2 if f"blockIdx.{axis}" in text else 1) * size for size, axis in axes), tuple(
        block
    )


def _arguments(kernel: Kernel, declared: Any) -> list[Any]:
    rng = np.random.default_rng(1)
    known = declared if declared and len(declared) == len(kernel.parameters) else None
    made: list[Any] = []
    for position, parameter in enumerate(sorted(kernel.parameters, key=lambda one: one.ordinal)):
        one = known[position] if known else None
        if one.pointer if one else parameter.size == 8:
            dtype = type_named((one.dtype if one else None) or "float32")
            whole = dtype.kind in "iu"
            values = rng.integers(0, 16, ELEMENTS) if whole else rng.random(ELEMENTS)
            made.append(values.astype(dtype))
        elif one and one.dtype and is_real(type_named(one.dtype)):
            made.append(type_named(one.dtype).type(1.5))
        elif parameter.size in (1, 2, 4, 8):
            made.append(np.dtype(f"int{8 * parameter.size}").type(64))
        else:
            made.append(np.void(bytes(parameter.size)))
    return made


def _compared(first: Any, twin: Kernel, declared: Any, launch: HostLaunch | None) -> str:
    executes, second = _executed(twin, declared, launch)
    if first is None or second is None:
        return "-" if first is None and second is None else f"nvcc's cubin: {executes}"
    pairs = list(zip(first, second, strict=True))
    if all(a.tobytes() == b.tobytes() for a, b in pairs):
        return "equal"
    close = all(np.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True) for a, b in pairs)
    return "rounding" if close else "differ"


def _apart(side: Any, name: str, error: str | None, executes: str) -> str | None:
    """Reason to count a kernel that does not execute apart; None if it is not."""
    if error is None and not executes.startswith("refused"):
        return None
    roots = [item for item in side.roots if name.encode() in item.names]
    from toolkit.machine_code.source_items import reached

    needed = reached(side.items, roots)[0]
    code = b" ".join(item.text for item in needed).decode(errors="replace")
    text = side.contents[side.file].decode(errors="replace")
    includes = " ".join(re.findall(r"#[ \t]*include[ \t]*\S+", text))
    for reason, marks in APART.items():
        if any(mark in code or mark in includes for mark in marks):
            return reason
    if error is not None and "an #if leaves out" in error:
        return "left out by an #if of its file"
    if side.missing_for_device:
        return f"not there: {side.missing_for_device[0][1]}"
    return None


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A row per repository, and the sum."""
    head = "repository", "kernels", "apart", "counted", "compile", "execute", "nvcc", "equal"
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    by_repository: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_repository[row["repository"]].append(row)
    for name, group in [*sorted(by_repository.items()), ("all", list(rows))]:
        counted = [row for row in group if row["apart"] is None]
        ran = [row for row in counted if row["executes"].startswith(("executes", "fault", "too"))]
        outputs = Counter(row["outputs"] for row in counted)
        numbers = (
            len(group),
            len(group) - len(counted),
            len(counted),
            sum(row["compiles"] is None for row in counted),
            len(ran),
            sum(row["untouched"] is None for row in counted),
            outputs["equal"] + outputs["rounding"],
        )
        yield f"| {name} | " + " | ".join(map(str, numbers)) + " |"
