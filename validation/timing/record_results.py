"""Record what the small launches of kernels that are timed or on trial leave in memory on a GPU.

    python -m validation.timing.record_results    # needs a GPU and nvcc

Arrays that a launch does not change are left out. Of those that must come out the same, the SHA-256
of their bits is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from toolkit.gpu.context import Gpu
from toolkit.launch.launch import buffers_of
from validation.corpus.case import Array, sha256_of
from validation.counters.counting import launch
from validation.timing.declared import RESULTS, rng
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import TRIALS

RECORDED_ON = "h100-sxm"


def results(gpu: Gpu) -> Iterator[tuple[str, Array]]:
    """Each array that a small launch changes, by kernel and number of the array."""
    for one in (*TIMED, *TRIALS):
        case = one.small_case
        arguments = case.make(rng())
        after = launch(gpu, one.code(gpu.device.sm_arch), case.geometry, arguments)
        for number, (old, new) in enumerate(
            zip(buffers_of(arguments).values(), after, strict=True)
        ):
            if old.tobytes() != new.tobytes():
                yield f"{one.key} {number}", new if one.error else np.array(sha256_of(new))


def main() -> None:
    with Gpu() as gpu:
        if gpu.device.key != RECORDED_ON:
            raise SystemExit(f"this is an {gpu.device.name}: the results are those of an H100")
        arrays: dict[str, Any] = dict(results(gpu))
        np.savez_compressed(RESULTS, **arrays)
        print(f"wrote {RESULTS} on {gpu.device.name}")


if __name__ == "__main__":
    main()
