"""The records of one shape, as a bench makes them."""

from analysis.devices import find_device
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.plan import make_plan


def profiled(
    kind,
    shape,
    variants=None,
    device="rtx-3090",
    progress=None,
    interrupted=False,
):
    """By label; of those that were done where Ctrl-C is expected."""
    plan = make_plan([shape], variants, sampling=Sampling(max_samples=2), seed=1)
    found = {}
    try:
        kind(find_device(device)).profile_shape(plan.shapes[0], plan, found, progress or Progress())
        assert not interrupted
    except KeyboardInterrupt:
        assert interrupted
    assert {shape for shape, _ in found} <= {plan.shapes[0]}
    return {label: record for (_, label), record in found.items()}
