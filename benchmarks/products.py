"""Every path at the 300 products of the law against cuBLAS and torch, in one process. Needs a GPU.

    python -m benchmarks.products [--seed N] [--candidates] [--seconds S] [--output FILE]

Each product has fresh random data. What a path computes is held against float64 within a bound that
scales with K, C holds NaN where beta is 0, and nothing around C may change. Then the chosen path,
cuBLAS (sgemm, strided batched, gemv where it applies; TF32 off) and torch.matmul take turns in five
rounds, back to back in a CUDA graph and one launch at a time with L2 flushed. `--candidates` times
all other paths too, for the regret of the choice.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from analysis.devices import Device, find_device
from analysis.geometry import Geometry
from benchmarks.graphs import GraphTimer
from kernels.path_times import candidates, plan_for
from kernels.paths import Factor, PathLaunch, Plan, Pointer, TensorMapOf
from kernels.product import Product
from toolkit.gpu.driver import LoadedModule, encoded
from toolkit.launch.tensor_map import MapTiling
from validation.products.law import SEED, Case, Group, Sizes, products

GUARD = 1024  # floats before and behind each matrix
ROUNDS = 5
GRAPH_S = 3e-4
OTHERS = 1.3  # estimates of candidates that are timed, over the least
MOST_REPEATS = 20
L2_BYTES = 128 << 20

Launch = Callable[[], Any]


def compiled(plans: list[Plan]) -> dict[Any, bytes]:
    """The machine code of every kernel of the plans, by `key`."""
    found = {key(launch): launch for plan in plans for launch in plan.launches}

    def one(launch: PathLaunch) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder, "k.cu"), Path(folder, "k.cubin")
            source.write_text(launch.source)
            macros = [f"-D{name}={value}" for name, value in launch.defines.items()]
            done = subprocess.run(
                [
                    shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc",
                    "-cubin",
                    "-arch=sm_90",
                    "-std=c++17",
                    *macros,
                    "-o",
                    cubin,
                    source,
                ],
                capture_output=True,
                check=False,
                text=True,
            )
            if done.returncode:
                raise SystemExit(f"{launch.file} {launch.defines}: {done.stderr}")
            return cubin.read_bytes()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(found, pool.map(one, found.values()), strict=True))


def squares() -> list[Case]:
    """Squares of 256 to 4096 by 128, and of 5120 to 12,288 by 1024."""
    sizes = (*range(256, 4097, 128), *range(5120, 12289, 1024))
    return [
        Case(
            name=f"square {size}",
            group=Group.LARGE,
            sizes=Sizes.EIGHTS,
            product=Product(m=size, n=size, k=size),
        )
        for size in sizes
    ]


def weighed(device: Device, product: Product, with_others: bool) -> list[Plan]:
    """The chosen plan, then those that are estimated to take at most `OTHERS` times as long."""
    chosen = plan_for(device, product)
    others = sorted(candidates(device, product), key=lambda one: one[0]) if with_others else []
    made = [
        make(product, *rest) for time_s, make, rest in others if time_s <= OTHERS * others[0][0]
    ]
    return [chosen, *(plan for plan in made if plan.label != chosen.label)]


def key(launch: PathLaunch) -> tuple[Any, ...]:
    return launch.file, *sorted(launch.defines.items())


class Modules:
    def __init__(self, images: dict[Any, bytes]) -> None:
        self.images = images
        self.loaded: dict[Any, LoadedModule] = {}

    def prepared(
        self, launch: PathLaunch, addresses: dict[str, int], factors: dict[str, float], stream: int
    ) -> Launch:
        if key(launch) not in self.loaded:
            self.loaded[key(launch)] = LoadedModule(self.images[key(launch)])
        geometry = Geometry(
            grid=launch.grid,
            block=(launch.block, 1, 1),
            dynamic_shared_bytes=launch.dynamic_shared_bytes,
        )
        arguments = [as_bytes(one, addresses, factors) for one in launch.arguments]
        return self.loaded[key(launch)].prepared(
            launch.entry, geometry, arguments, stream, waits_itself=launch.waits_itself
        )


def as_bytes(argument: Any, addresses: dict[str, int], factors: dict[str, float]) -> bytes:
    if isinstance(argument, Factor):
        return np.float32(factors[argument.name]).tobytes()
    if isinstance(argument, Pointer):
        return np.uint64(addresses[argument.of] + argument.offset_bytes).tobytes()
    if isinstance(argument, TensorMapOf):
        tiling = MapTiling(
            shape=argument.shape,
            dtype=np.dtype(np.float32),
            box=argument.box,
            swizzle=argument.swizzle_bytes,
            l2_promotion=256,
            pitches=argument.pitches_bytes,
        )
        where = addresses[argument.pointer.of] + argument.pointer.offset_bytes
        return encoded(tiling, where).content
    return bytes(argument.tobytes())


class Blas:
    """cuBLAS by ctypes, the library that torch has loaded."""

    def __init__(self, stream: int) -> None:
        torch.matmul(torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda"))
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        names = {line.split()[-1] for line in mapped if "libcublas.so" in line}
        self.library = ctypes.CDLL(sorted(names)[0])
        self.handle = ctypes.c_void_p()
        self.check(self.library.cublasCreate_v2(ctypes.byref(self.handle)))
        self.check(self.library.cublasSetStream_v2(self.handle, ctypes.c_void_p(stream)))
        self.workspace = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
        self.check(
            self.library.cublasSetWorkspace_v2(
                self.handle, ctypes.c_void_p(self.workspace.data_ptr()), ctypes.c_size_t(32 << 20)
            )
        )
        version = ctypes.c_int()
        self.library.cublasGetVersion_v2(self.handle, ctypes.byref(version))
        self.version = version.value

    def check(self, status: int) -> None:
        if status:
            raise SystemExit(f"cuBLAS: status {status}")

    def launches(self, p: Product, at: dict[str, int]) -> dict[str, Launch]:
        """Column-major, so that it computes the transpose: C' = op(B)' op(A)'."""
        a, b, c = (ctypes.c_void_p(at[x]) for x in "ABC")
        alpha, beta = ctypes.c_float(p.alpha), ctypes.c_float(p.beta)
        ra, rb = ctypes.byref(alpha), ctypes.byref(beta)
        i, ll = ctypes.c_int, ctypes.c_longlong
        ops = i(int(p.transpose_b)), i(int(p.transpose_a))
        sizes = i(p.n), i(p.m), i(p.k)
        keep = (alpha, beta)
        if p.batch > 1:

            def batched(keep: Any = keep) -> None:
                self.check(
                    self.library.cublasSgemmStridedBatched(
                        self.handle, *ops, *sizes, ra, b, i(p.ldb), ll(p.stride_b), a, i(p.lda),
                        ll(p.stride_a), rb, c, i(p.ldc), ll(p.stride_c), i(p.batch),
                    )
                )  # fmt: skip

            return {"sgemm": batched}

        def sgemm(keep: Any = keep) -> None:
            self.check(
                self.library.cublasSgemm_v2(
                    self.handle, *ops, *sizes, ra, b, i(p.ldb), a, i(p.lda), rb, c, i(p.ldc)
                )
            )

        found: dict[str, Launch] = {"sgemm": sgemm}
        if p.n == 1:  # C = op(A) b; the stored A is a column-major matrix of its columns x rows
            stored, inc_x = p.a, i(1 if p.transpose_b else p.ldb)

            def columns(keep: Any = keep) -> None:
                self.check(
                    self.library.cublasSgemv_v2(
                        self.handle, i(int(not p.transpose_a)), i(stored.columns), i(stored.rows),
                        ra, a, i(p.lda), b, inc_x, rb, c, i(p.ldc),
                    )
                )  # fmt: skip

            found["gemv"] = columns
        elif p.m == 1:
            stored, inc_x = p.b, i(p.lda if p.transpose_a else 1)

            def rows(keep: Any = keep) -> None:
                self.check(
                    self.library.cublasSgemv_v2(
                        self.handle, i(int(p.transpose_b)), i(stored.columns), i(stored.rows),
                        ra, b, i(p.ldb), a, inc_x, rb, c, i(1),
                    )
                )  # fmt: skip

            found["gemv"] = rows
        return found


class Operands:
    """A, B and C of a product in buffers with guards, and what C must be."""

    def __init__(self, p: Product, seed: int) -> None:
        self.p = p
        random = torch.Generator(device="cuda").manual_seed(seed)
        self.buffers, self.views = {}, {}
        for name, stored, stride in (
            ("A", p.a, p.stride_a),
            ("B", p.b, p.stride_b),
            ("C", p.c, p.stride_c),
        ):
            floats = (p.batch - 1) * stride + stored.span + 2 * GUARD
            buffer = torch.rand(floats, generator=random, device="cuda") - 0.5
            shape: tuple[int, ...] = stored.rows, stored.columns
            strides: tuple[int, ...] = stored.pitch, 1
            if p.batch > 1:
                shape, strides = (p.batch, *shape), (stride, *strides)
            self.buffers[name] = buffer
            self.views[name] = torch.as_strided(buffer, shape, strides, GUARD)
        self.at = {name: one.data_ptr() + 4 * GUARD for name, one in self.buffers.items()}
        self.a = self.views["A"].mT if p.transpose_a else self.views["A"]
        self.b = self.views["B"].mT if p.transpose_b else self.views["B"]
        self.c = self.views["C"]
        self.c_before = self.c.clone()
        self._reference()

    def _reference(self) -> None:
        p = self.p
        self.small = p.multiply_adds < 2**33
        rows = slice(None) if self.small else slice(0, None, max(1, p.m // 256))
        self.rows = rows
        a = self.a[..., rows, :].double()
        b = self.b.double()
        old = p.beta * self.c_before[..., rows, :].double() if p.beta else 0.0
        self.want = p.alpha * (a @ b) + old
        size = abs(p.alpha) * (a.abs() @ b.abs()) + (abs(old) if p.beta else 0.0)
        self.bound = (p.k + 4) * 2.0**-24 * size + 1e-30
        self.tight = 4 * (p.k**0.5 + 8) * 2.0**-24 * size + 1e-30

    def reset(self) -> None:
        self.c.fill_(float("nan")) if self.p.beta == 0 else self.c.copy_(self.c_before)

    def check(self, label: str, launch: Launch, guards: bool) -> str | None:
        """Error in the result of `launch`, None if there is none."""
        self.reset()
        before = self.buffers["C"].clone() if guards else None
        torch.cuda.synchronize()
        launch()
        torch.cuda.synchronize()
        error = (self.c[..., self.rows, :].double() - self.want).abs()
        worst = float((error / self.bound).max())
        if not worst <= 1:
            return f"{label}: error {worst} times its bound"
        if not float((error / self.tight).max()) <= 1:
            return f"{label}: error {float((error / self.tight).max())} times sqrt(K) bound"
        if before is not None:
            torch.as_strided(before, self.c.shape, self.c.stride(), GUARD).copy_(self.c)
            if not torch.equal(before.view(torch.int32), self.buffers["C"].view(torch.int32)):
                return f"{label}: wrote beside C"
        return None

    def torch_launch(self) -> Launch:
        p = self.p
        if p.alpha == 1 and p.beta == 0:
            return lambda: torch.matmul(self.a, self.b, out=self.c)
        if p.batch > 1:
            return lambda: torch.baddbmm(
                self.c, self.a, self.b, beta=p.beta, alpha=p.alpha, out=self.c
            )
        return lambda: torch.addmm(self.c, self.a, self.b, beta=p.beta, alpha=p.alpha, out=self.c)


def median(values: list[float]) -> float:
    return float(np.median(values))


class Bench:
    def __init__(self, device: Device, graphs: GraphTimer, images: dict[Any, bytes]) -> None:
        self.device, self.graphs, self.modules = device, graphs, Modules(images)
        self.blas = Blas(graphs.stream)
        self.stream = torch.cuda.ExternalStream(graphs.stream)
        self.flushed = torch.empty(L2_BYTES // 4, device="cuda")
        self.workspace = torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")

    def launch_of(self, plan: Plan, ops: Operands) -> Launch:
        if plan.workspace_bytes > self.workspace.numel():
            self.workspace = torch.zeros(plan.workspace_bytes, dtype=torch.uint8, device="cuda")
        self.workspace[: plan.zeroed_bytes].zero_()
        torch.cuda.synchronize()
        addresses = ops.at | {"workspace": self.workspace.data_ptr()}
        factors = {"alpha": ops.p.alpha, "beta": ops.p.beta}
        made = [
            self.modules.prepared(one, addresses, factors, self.graphs.stream)
            for one in plan.launches
        ]

        def launch(keep: Any = self.workspace) -> None:
            for one in made:
                one()

        return launch

    def timer(self, launch: Launch, p: Product, repeats: int | None = None) -> Callable[[], float]:
        expected = max(p.flop / 40e12, p.matrix_bytes / 2.5e12) + 3e-6
        repeats = repeats or max(2, min(MOST_REPEATS, int(GRAPH_S / expected)))
        with torch.cuda.stream(self.stream):
            return self.graphs.timer(launch, repeats)

    def flush(self, timer: Callable[[], float]) -> float:
        self.flushed.fill_(1.0)
        torch.cuda.synchronize()
        return timer()

    def case(self, case: Case, chosen: Plan, candidates: list[Plan], samples: int) -> Any:
        p = case.product
        ops = Operands(p, hash(case.name) % 2**31)
        record: dict[str, Any] = {"name": case.name, "sizes": str(case.sizes), "product": str(p)}
        record |= {"errors": [], "candidates": {}}
        rivals = self.blas.launches(p, ops.at) | {"torch": ops.torch_launch()}
        with torch.cuda.stream(self.stream):
            for name, launch in rivals.items():
                if problem := ops.check(name, launch, False):
                    record["errors"].append(problem)
        for plan in candidates:
            launch = self.launch_of(plan, ops)
            guards = ops.buffers["C"].numel() < 1 << 24
            for _ in range(2):  # the second finds what the first left in the workspace
                problem = ops.check(plan.label, launch, guards)
            if problem:
                record["errors"].append(problem)
                continue
            timer = self.timer(launch, p)
            timer()
            taken = median([timer() for _ in range(samples)])
            record["candidates"][plan.label] = taken
        record["chosen"] = chosen.label
        launch = self.launch_of(chosen, ops)
        for _ in range(2):
            if problem := ops.check(chosen.label, launch, True):
                record["errors"].append(problem)
        ours = {"ours": launch}
        both = ours | rivals
        for protocol, repeats in (("back to back", None), ("flushed", 1)):
            timers = {name: self.timer(one, p, repeats) for name, one in both.items()}
            times: dict[str, list[float]] = {name: [] for name in timers}
            for timer in timers.values():
                timer()
            for _ in range(ROUNDS):
                for name, timer in timers.items():
                    times[name].append(self.flush(timer) if repeats else timer())
            record[protocol] = {name: median(one) for name, one in times.items()}
        self.graphs.release()
        return record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--every", type=int, default=1, help="take each n-th product")
    parser.add_argument(
        "--squares", action="store_true", help="128 i for i = 2 to 32, 1024 i to 12"
    )
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    start = time.monotonic()
    device = find_device("h200" if "H200" in torch.cuda.get_device_name() else "h100-sxm")
    cases = squares() if chosen.squares else products(chosen.seed)[:: chosen.every]
    plans = [weighed(device, case.product, chosen.candidates) for case in cases]
    images = compiled([plan for some in plans for plan in some])
    print(f"{len(images)} kernels compiled after {time.monotonic() - start:.1f} s", flush=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")  # makes its context the current one
    records = []
    with GraphTimer() as graphs:
        bench = Bench(device, graphs, images)
        for case, some in zip(cases, plans, strict=True):
            torch.cuda.empty_cache() if case.product.allocated_bytes > 1 << 30 else None
            if time.monotonic() - start > chosen.seconds:
                print("out of time")
                break
            record = bench.case(case, some[0], some if chosen.candidates else [], chosen.samples)
            records.append(record)
            for error in record["errors"][:3]:
                print(f"{case.name} {case.product}: {error}", flush=True)
            if chosen.output:
                run = {"cublas": bench.blas.version, "device": device.name, "seed": chosen.seed}
                chosen.output.write_text(json.dumps(run | {"records": records}), encoding="utf-8")
    for record in records:
        ratios = {}
        for protocol in ("back to back", "flushed"):
            one = record[protocol]
            peer = min(value for name, value in one.items() if name != "ours")
            ratios[protocol] = peer / one["ours"] if "ours" in one else 0
        record["ratios"] = ratios
        print(
            f"{record['product']:28} {record['sizes'][:4]} {ratios['back to back']:.3f} "
            f"{ratios['flushed']:.3f} {record['back to back'].get('ours', 0) * 1e6:8.1f} us "
            f"{record.get('chosen')}"
        )
    for protocol in ("back to back", "flushed"):
        values = np.array([r["ratios"][protocol] for r in records if r["ratios"][protocol]])
        print(
            f"{protocol}: geometric mean {np.exp(np.log(values).mean()):.3f}, least "
            f"{values.min():.3f}, at least 0.95: {(values >= 0.95).mean():.3f}"
        )
    print(f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
