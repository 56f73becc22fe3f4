"""Architectures that run on a device."""

import pytest

from analysis.devices import find_device
from analysis.errors import InputError
from toolkit.machine_code.architectures import (
    DEFAULT_ARCHITECTURE,
    architecture_of,
    with_features,
)


def test_the_architecture_is_the_one_given_else_the_devices_else_the_default():
    assert architecture_of("sm_80", None) == "sm_80"
    assert architecture_of(None, find_device("t4")) == "sm_75"
    assert architecture_of("sm_80", find_device("rtx-3090")) == "sm_80"
    assert architecture_of(None, None) == DEFAULT_ARCHITECTURE


@pytest.mark.parametrize(
    ("arch", "device", "runs"),
    [
        ("sm_75", "t4", True),
        ("sm_80", "rtx-3090", True),  # 8.6
        ("sm_86", "a100-40gb", False),  # 8.0 lacks what 8.6 may have
        ("sm_75", "rtx-3090", False),  # of another major capability
        ("sm_90a", "h100-sxm", True),
        ("sm_89", "h100-sxm", False),
        ("sm_100f", "b200", True),
        ("sm_100a", "b200", True),
        ("sm_61", "gtx-1080-ti", True),
        ("nonsense", "t4", True),  # the compiler refuses it
    ],
)
def test_code_runs_on_later_devices_of_its_major_capability(arch, device, runs):
    if runs:
        assert architecture_of(arch, find_device(device)) == arch
    else:
        with pytest.raises(InputError, match=f"^code for {arch} does not run on the NVIDIA"):
            architecture_of(arch, find_device(device))


@pytest.mark.parametrize(
    ("arch", "text", "wanted"),
    [
        ("sm_90", "wgmma.fence.sync.aligned;", "sm_90a"),
        ("sm_120", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32", "sm_120a"),
        ("sm_120", "Feature '.kind::mxf4nvf4' not supported on .target 'sm_120'", "sm_120a"),
        ("sm_121", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale", "sm_121a"),
        ("sm_120", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_120"),
        ("sm_100", "tcgen05.mma.cta_group::1.kind::f8f6f4", "sm_100"),
        ("sm_90", "kind::f8f6f4", "sm_90"),
    ],
)
def test_features_of_one_architecture_are_chosen_where_they_are_named(arch, text, wanted):
    assert with_features(arch, text) == wanted
