"""`matmul(..., precision="fp32x")` against cuBLAS FP32: times, errors, special values. Needs a GPU.

    python -m benchmarks.split_products [--parts times classes sustained peers accuracy special]
                                        [--output FILE] [--gemmul8 LIBRARY]

The timed call is the one that a user makes, with an output that is given: of cuBLAS (torch.matmul,
TF32 off) and of ours, by the protocols of benchmarks/protocols.py. Errors are those of rows of C
against float64, relative to |A||B|. With a library of GEMMul8 (benchmarks/kernels/gemmul8.cu) it is
compared too: errors by the number of moduli, and times of those that are as accurate as cuBLAS.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from analysis.problem import Gemm
from analysis.product_errors import product_error, sample_inputs
from benchmarks.protocols import Call, CallQueue, burst_s, sustained_s
from toolkit import __version__, matmul
from toolkit.gpu.environment import commit
from toolkit.product.matmul import PrecisionWarning

WAIT_CLOCKS = 4_000_000  # of the kernel behind which calls are queued
STREAM = CallQueue(
    event=partial(torch.cuda.Event, enable_timing=True),
    hold=partial(torch.cuda._sleep, WAIT_CLOCKS),
    synchronize=torch.cuda.synchronize,
    milliseconds=lambda begin, end: float(begin.elapsed_time(end)),
)
ROWS = 256  # of C that are compared
SEED = 0
CLASSES = {  # of data as the record names them, keys of `DATA_CLASSES`
    "normal": "normal",
    "uniform": "uniform",
    "exponents over 2^24": "exponents-24",
    "exponents over 2^40": "exponents-40",
    "exponents over 2^60": "exponents-60",
    "rows and columns over 2^60": "rows-columns",
    "2^20 along K": "k-scaled-20",
    "2^30 along K": "k-scaled-30",
    "all of K over 2^60": "k-scaled-all",
    "one column times 2^40": "one-term",
}
SIZES = (
    *((1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3),
    *((1000, 1016, 520), (1001, 1004, 1004), (1100, 1300, 1999), (2049, 2047, 2050)),
    *((3000, 5000, 2000), (511,) * 3, (256, 4096, 4096)),
)
Operands = tuple[torch.Tensor, torch.Tensor]


def errors(data: str, c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> dict[str, Any]:
    """Root mean square and maximum of the errors of evenly spaced rows, relative to |A||B|."""
    m, n, k = c.shape[0], c.shape[1], a.shape[1]
    rows = [one * m // ROWS for one in range(ROWS)]
    some_of_c, some_of_a, all_of_b = (one.cpu().numpy() for one in (c[rows], a[rows], b))
    found = product_error(
        some_of_c,
        some_of_a,
        all_of_b,
        data=CLASSES[data],
        shape=Gemm(m=m, n=n, k=k),
        seed=SEED,
    )
    return {"rms": found.rms, "max": found.maximum}


def drawn(data: str, m: int, n: int, k: int) -> Operands:
    """A and B of a class, on the GPU."""
    a, b = sample_inputs(CLASSES[data], k, SEED, rows=m, columns=n)
    return torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()


# Parts of the record, each a list of rows.


def _calls(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, Call, Call]:
    c = torch.empty(a.shape[0], b.shape[1], device="cuda")

    def ours() -> Any:
        return matmul(a, b, c, precision="fp32x")

    return c, lambda: torch.matmul(a, b, out=c), ours


def _row(a: torch.Tensor, b: torch.Tensor, data: str, layout: str) -> dict[str, Any]:
    c, cublas, ours = _calls(a, b)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PrecisionWarning)
        ours()
    first = c.clone()
    error = errors(data, c, a, b)
    ours()
    assert first.equal(c) or bool(first.isnan().any())
    cublas()
    of_cublas = errors(data, c, a, b)
    cublas_s, ours_s = burst_s(cublas, STREAM), burst_s(ours, STREAM)
    return {
        "data": data,
        "layout": layout,
        "mnk": [a.shape[0], b.shape[1], a.shape[1]],
        "cublas_s": cublas_s,
        "fp32x_s": ours_s,
        "ratio": cublas_s / ours_s,
        "error": error,
        "cublas_error": of_cublas,
        "handed_over": str(said[0].message) if said else "",
    }


def times() -> Iterator[dict[str, Any]]:
    for sizes in SIZES:
        yield _row(*drawn("normal", *sizes), data="normal", layout="NN")
    for m, n, k in ((1024,) * 3, (2048,) * 3, (4096,) * 3):
        a, b = drawn("normal", m, n, k)
        yield _row(a, b.T.contiguous().T, data="normal", layout="NT")


def classes() -> Iterator[dict[str, Any]]:
    for size in (1024, 4096):
        for name in ("rows and columns over 2^60", "all of K over 2^60"):
            yield _row(*drawn(name, size, size, size), data=name, layout="NN")


def sustained() -> Iterator[dict[str, Any]]:
    for size in (4096, 8192):
        _, cublas, ours = _calls(*drawn("normal", size, size, size))
        cublas_s, ours_s = sustained_s(cublas, STREAM), sustained_s(ours, STREAM)
        yield {"size": size, "cublas_s": cublas_s, "fp32x_s": ours_s, "ratio": cublas_s / ours_s}


def accuracy() -> Iterator[dict[str, Any]]:
    sizes = ((2048,) * 3, (1024, 1024, 8192), (2048, 2048, 72), (1100, 1300, 1999))
    for m, n, k in sizes:
        for name in CLASSES:
            a, b = drawn(name, m, n, k)
            c, cublas, ours = _calls(a, b)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrecisionWarning)
                ours()
            found = errors(name, c, a, b)
            cublas()
            of_cublas = errors(name, c, a, b)
            yield {"data": name, "mnk": [m, n, k], "fp32x": found, "cublas": of_cublas}


def special() -> Iterator[dict[str, Any]]:
    """Compare special values: non-finite elements with float64, finite ones with the bound."""
    cases: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
        "one Inf in A": lambda a, b: a[5, 7].fill_(float("inf")),
        "one NaN in B": lambda a, b: b[5, 7].fill_(float("nan")),
        "NaN in every row of A": lambda a, b: a[:, 3].fill_(float("nan")),
        "Inf with zeros in B": lambda a, b: (a[5, 7].fill_(float("inf")), b[7, ::2].fill_(0)),
        "a row and a column of zeros": lambda a, b: (a[9].fill_(0), b[:, 9].fill_(0)),
        "subnormal A": lambda a, b: a.mul_(1e-40),
        "subnormal A, B times 1e30": lambda a, b: (a.mul_(1e-40), b.mul_(1e30)),
        "results of 1e-39": lambda a, b: (a.mul_(1e-20), b.mul_(1e-20)),
        "overflow": lambda a, b: (a.mul_(1e19), b.mul_(1e19)),
        "3e37 times 1e-30": lambda a, b: (a.mul_(3e37), b.mul_(1e-30)),
    }
    for name, change in cases.items():
        a, b = drawn("normal", 2048, 2048, 2048)
        change(a, b)
        c, cublas, ours = _calls(a, b)
        row: dict[str, Any] = {"data": name}
        for call, label in ((ours, "fp32x"), (cublas, "cublas")):
            call()
            exact = a.double() @ b.double()
            rounded = exact.float()
            finite = rounded.isfinite()
            same = (c == rounded) | (c.isnan() & rounded.isnan())
            size = a.abs().double() @ b.abs().double()
            wrong = (c.double() - exact).abs() - 2.0**-149
            relative = (wrong / size)[finite & (size > 0)]
            row[label] = {
                "non-finite elements that differ": int((~finite & ~same).sum()),
                "finite elements that are not": int((finite & ~c.isfinite()).sum()),
                "max": float(relative.nan_to_num(0).max()) if len(relative) else 0.0,
            }
        row["fp32x_s"] = burst_s(ours, STREAM)
        yield row


def peers() -> Iterator[dict[str, Any]]:
    """cuBLAS TF32 and Triton's split products, beside cuBLAS FP32 and ours."""
    for size in (1024, 4096):
        a, b = drawn("normal", size, size, size)
        c, cublas, ours = _calls(a, b)
        calls: dict[str, Call] = {"cuBLAS FP32": cublas, "fp32x": ours}

        def tf32() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.matmul(a, b, out=c)  # noqa: B023
            torch.backends.cuda.matmul.allow_tf32 = False

        calls["cuBLAS TF32"] = tf32
        for precision in ("tf32x3", "bf16x6"):
            calls[f"Triton {precision}"] = _triton_call(a, b, c, precision)
        for name, call in calls.items():
            try:
                call()
                row = {"peer": name, "size": size, "error": errors("normal", c, a, b)}
                yield row | {"seconds": burst_s(call, STREAM)}
            except Exception as error:  # a peer that does not install or lacks a precision
                yield {"peer": name, "size": size, "failed": str(error).splitlines()[0]}


def _triton_call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, precision: str) -> Call:
    from benchmarks.triton_products import product

    return lambda: product(a, b, c, precision)


GEMMUL8_SIZES = (2048, 1024, 4096, 8192)  # the first chooses the moduli
MODULI = range(5, 11)
MODES = {"fast": 1, "accurate": 0}


class Gemmul8:
    """SGEMM of GEMMul8 on INT8 tensor cores."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library.resolve()))
        self._library.gemmul8_workspace_bytes.restype = ctypes.c_size_t
        if status := self._library.gemmul8_open():
            raise RuntimeError(f"cublasCreate returned {status}")

    def call(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, moduli: int, mode: str
    ) -> Call:
        """A call that multiplies with so many moduli, in its own workspace."""
        sizes = [ctypes.c_size_t(one) for one in (a.shape[0], b.shape[1], a.shape[1])]
        size = self._library.gemmul8_workspace_bytes(*sizes, moduli)
        workspace = torch.empty(size, dtype=torch.uint8, device="cuda")
        pointers = [ctypes.c_void_p(one.data_ptr()) for one in (a, b, c)]

        def multiply() -> None:
            last = ctypes.c_void_p(workspace.data_ptr())
            self._library.gemmul8_multiply(*sizes, *pointers, moduli, MODES[mode], last)

        return multiply


def gemmul8(library: Path) -> Iterator[dict[str, Any]]:
    """GEMMul8 beside cuBLAS FP32 and ours: the fewest moduli of each mode that are as accurate on
    normal numbers as cuBLAS.
    """
    peer = Gemmul8(library)
    chosen: dict[str, int] = {}
    for size in GEMMUL8_SIZES:
        for data in ("normal", "exponents over 2^60"):
            a, b = drawn(data, size, size, size)
            c, cublas, ours = _calls(a, b)
            calls: dict[str, Call] = {"cuBLAS FP32": cublas, "fp32x": ours}
            for mode in MODES:
                for moduli in [chosen[mode]] if mode in chosen else MODULI:
                    calls[_name(mode, moduli)] = peer.call(a, b, c, moduli, mode)
            found = {}
            for name, call in calls.items():
                c.fill_(float("nan"))
                call()
                found[name] = errors(data, c, a, b)
            if not chosen:
                chosen = {mode: _fewest(mode, found) for mode in MODES}
            timed = {"cuBLAS FP32", "fp32x", *(_name(*one) for one in chosen.items())}
            for name, error in found.items():
                row = {"peer": name, "size": size, "data": data, "error": error}
                if name in timed and data == "normal":
                    row["seconds"] = burst_s(calls[name], STREAM)
                yield row


def _name(mode: str, moduli: int) -> str:
    return f"GEMMul8 {mode}, {moduli} moduli"


def _fewest(mode: str, found: dict[str, dict[str, Any]]) -> int:
    """The fewest moduli with which the error is at most that of cuBLAS; else the most tried."""
    most = found["cuBLAS FP32"]["rms"]
    enough = (one for one in MODULI if found[_name(mode, one)]["rms"] <= most)
    return next(enough, MODULI[-1])


PARTS = {one.__name__: one for one in (times, classes, sustained, peers, accuracy, special)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--gemmul8", type=Path, help="a library of benchmarks/kernels/gemmul8.cu")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    record: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "version": __version__,
        "commit": commit(),
    }
    parts = {name: PARTS[name] for name in options.parts}
    if options.gemmul8:
        parts["gemmul8"] = partial(gemmul8, options.gemmul8)
    for part, rows in parts.items():
        record[part] = []
        for row in rows():
            record[part].append(row)
            print(part, json.dumps(row), flush=True)
            if options.output:
                options.output.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
