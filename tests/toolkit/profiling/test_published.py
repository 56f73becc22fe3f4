"""Published timings: shipped facts with their sources, each beside the rung it is taken for."""

import pytest

from analysis.devices import find_device
from analysis.errors import RecordError
from kernels.selection import parse_selection
from tests.refusals import refusal
from toolkit import profile
from toolkit.profiling import published
from toolkit.profiling.published import publications, with_published


def of(made, label):
    return next(record.published for record in made.records if record.label == label)


def theory(device, shape, *variants):
    return profile([shape], variants, device=device, executor="theory", seed=1)


def test_every_timing_has_a_device_a_rung_and_a_time_for_each_size():
    assert [one.device for one in publications()] == ["t4", "gtx-1080-ti", "rtx-3090"]
    for publication in publications():
        assert find_device(publication.device).key == publication.device
        assert publication.source
        assert publication.caveat
        for timing in publication.timings:
            parse_selection(timing.rung)
            assert len(timing.seconds) == len(publication.sizes)
            assert all(0 < seconds < 1 for seconds in timing.seconds)


def test_a_time_stands_beside_the_roof_of_its_rung():
    (naive,) = of(theory("t4", "4096", "naive-coalesced", "tiled"), "naive-coalesced")
    assert naive.label == "naive (32x32 block)"
    assert naive.time_s == 0.418
    assert naive.flop_per_s == pytest.approx(328.8e9, rel=1e-3)  # 2 · 4096³ / 0.418 s
    assert naive.source.startswith('"An Optimization Procedure on Matrix Multiplication"')
    # 32 lanes' multiply-adds (64 FLOP) in 2 cycles of loads, on 40 SMs at 1.59 GHz
    assert naive.roof.flop_per_s == pytest.approx(32 * 40 * 1.59e9, rel=2e-3)


def test_other_parameters_stand_with_the_default_rung_and_their_own_roof():
    (one,) = of(theory("rtx-3090", "4096", "coarsened-1d"), "coarsened-1d")
    assert one.rung == "coarsened-1d:bk=8,tm=8"
    assert one.label == "1D coarsened (64x64x8, factor 8)"
    assert one.roof is not None


def test_a_record_of_those_parameters_takes_them():
    made = theory("rtx-3090", "4096", "coarsened-1d", "coarsened-1d:bk=8,tm=8")
    assert of(made, "coarsened-1d") == ()
    (one,) = of(made, "coarsened-1d:bk=8,tm=8")
    assert one.rung == "coarsened-1d:bk=8,tm=8"
    theory_of = made.records[1].theory
    assert one.roof.flop_per_s == theory_of.attainable_flop_per_s


def test_a_library_has_no_roof():
    (cublas,) = of(theory("rtx-3090", "4096", "cublas"), "cublas")
    assert cublas.time_s == 0.00518697
    assert cublas.roof is None


@pytest.mark.parametrize(
    ("device", "shape"), [("h200", "4096"), ("t4", "512"), ("t4", "4096x64x64")]
)
def test_other_devices_and_shapes_have_none(device, shape):
    assert of(theory(device, shape, "tiled"), "tiled") == ()


def test_each_shape_has_its_own_time():
    made = profile(["256", "512"], ["tiled"], device="gtx-1080-ti", executor="theory", seed=1)
    times = [[one.time_s for one in record.published] for record in made.records]
    assert times == [[40.5293e-6], [198.374e-6]]


@pytest.mark.parametrize("content", ["", "{}", '[{"device": "t4"}]', "[1"])
def test_damaged_package_data_is_told_in_one_line(content, tmp_path, monkeypatch):
    path = tmp_path / "sgemm.json"
    path.write_text(content)
    monkeypatch.setattr(published, "FILE", path)
    publications.cache_clear()
    said = refusal(RecordError, publications)
    assert said.startswith(f"{path}: ")
    assert said.endswith("; it came with the package: install that again")


def test_a_profile_without_records_stays_one():
    assert with_published([], find_device("t4")) == ()
