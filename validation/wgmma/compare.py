"""Random products on a GPU and on the simulator, by digests.

On a machine with an sm_90 GPU:  python -m validation.wgmma.compare gpu CUBINS digests.json
On any machine, before:          python -m validation.wgmma.compare compile CUBINS
On any machine, afterwards:      python -m validation.wgmma.compare simulate digests.json
The last one writes `recorded/compared_sm_90.json`: seed, outputs, mismatches and digest by form and
class. Outputs that differ are counted by rows of 64, the smallest part that has a digest.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation.wgmma.draws import BLOCKS, all_forms, classes, drawn
from validation.wgmma.products import ROWS, THREADS, Form, Words, inputs, results, source
from validation.wgmma.recorded_products import FOLDER

SEED = 57
RECORD = FOLDER / "compared_sm_90.json"


def kernel_of(form: Form) -> Kernel:
    name = f"{form.name}.cu"
    return compile_cubin(source(form), name=name, kernel="product", arch="sm_90a")


def compile_all(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for form in all_forms():
        (folder / f"{form.name}.cubin").write_bytes(kernel_of(form).image)


def digests(sums: Words) -> list[str]:
    """One of each block's rows."""
    return [sha256(np.ascontiguousarray(block).tobytes()).hexdigest()[:16] for block in sums]


def on_gpu(folder: Path, output: Path) -> None:
    import pycuda.autoinit
    from pycuda import driver

    found: dict[str, Any] = {"seed": SEED, "device": pycuda.autoinit.device.name(), "forms": {}}
    for form in all_forms():
        module = driver.module_from_file(str(folder / f"{form.name}.cubin"))
        function = module.get_function("product")
        found["forms"][form.name] = {}
        for name in classes(form):
            made = inputs(form, *drawn(form, name, SEED))
            at = [driver.to_device(x) if x.ndim else x for x in made.arguments]
            function.set_attribute(
                driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, made.shared_bytes
            )
            function(*at, grid=(made.blocks, 1), block=(THREADS, 1, 1), shared=made.shared_bytes)
            d = driver.from_device_like(at[3], made.arguments[3])
            found["forms"][form.name][name] = digests(results(form, d))
            for x in at:
                if isinstance(x, driver.DeviceAllocation):
                    x.free()
    output.write_text(json.dumps(found))


def simulated(form: Form, name: str, seed: int, kernel: Kernel) -> Words:
    from toolkit import simulate

    made = inputs(form, *drawn(form, name, seed))
    execution = simulate(
        kernel,
        grid=made.blocks,
        block=THREADS,
        dynamic_shared_bytes=made.shared_bytes,
        arguments=made.arguments,
        blocks="all",
    )
    return results(form, execution.outputs[3])


def on_simulator(measured: Path) -> None:
    of_gpu = json.loads(measured.read_text())
    rows = []
    for form in all_forms():
        kernel = kernel_of(form)
        for name in classes(form):
            wanted = of_gpu["forms"][form.name][name]
            found = digests(simulated(form, name, of_gpu["seed"], kernel))
            wrong = sum(x != y for x, y in zip(found, wanted, strict=True))
            rows.append(
                {
                    "form": form.name,
                    "class": name,
                    "seed": of_gpu["seed"],
                    "outputs": BLOCKS * ROWS * form.n,
                    "mismatches": wrong * ROWS * form.n,
                    "digest": sha256("".join(wanted).encode()).hexdigest()[:16],
                }
            )
            print(form.name, name, f"{wrong} of {len(wanted)} blocks differ", flush=True)
    record = {"device": of_gpu["device"], "compared": rows}
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps(record["device"])
    RECORD.write_text(f'{{"device": {head},\n"compared": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compile", folder]:
            compile_all(Path(folder))
        case ["gpu", folder, output]:
            on_gpu(Path(folder), Path(output))
        case ["simulate", measured]:
            on_simulator(Path(measured))
        case _:
            sys.exit(__doc__)
