"""Tuning on silicon: a sweep, the leaders race cuBLAS, the cache holds."""

import pytest

from kernels.variant import Variant
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.tuning.ranking import ranked
from toolkit.tuning.tune import entries_of, tune
from toolkit.tuning.tuner import Effort

pytestmark = pytest.mark.gpu

QUICK = Sampling(time_limit_s=0.2)
SPACE = "coarsened-1d:tm=16"  # three configurations


class Notices(Progress):
    def __init__(self):
        self.heard = []

    def notice(self, text):
        self.heard.append(text)


def run(folder, text=SPACE, shape="512", **more):
    progress = Notices()
    effort = Effort(sampling=QUICK, cache=folder, **more)
    return tune(text, [shape], effort=effort, seed=1, progress=progress), progress.heard


def test_a_space_is_swept_checked_and_raced_and_the_second_run_sweeps_nothing(
    tmp_path,
):
    found, heard = run(tmp_path)
    shape = found.shapes[0]
    assert heard == []
    assert [one.status for one in shape.candidates] == ["ok"] * 3
    assert all(one.swept and one.swept.median_s > 0 for one in shape.candidates)
    assert shape.winners
    for winner in shape.winners:
        assert winner.check.passed
        assert winner.measured.relative_to_cublas is not None
    assert len(entries_of(found)) == 1
    again, said = run(tmp_path)
    assert "3 of 3 configurations of 512x512x512 were measured before" in said[0]
    swept = {one.label: one.swept.samples_s for one in shape.candidates if one.swept}
    for one in again.shapes[0].candidates:
        assert one.swept.from_cache
        assert one.swept.samples_s == swept[one.label]


def test_the_sweep_and_the_final_agree_on_a_time(tmp_path):
    # the same machine code, both with L2 flushed; a sweep's events have the launch between them
    found, _ = run(tmp_path, "coarsened-1d:bk=8,tm=8", "2048")
    (one,) = found.shapes[0].candidates
    assert one.swept.median_s == pytest.approx(one.measured.median_s, rel=0.1)


def test_padded_operands_and_a_ragged_shape(tmp_path):
    found, _ = run(tmp_path, "vectorized", "511x513x127")
    shape = found.shapes[0]
    assert str(shape.executed_shape) == "511x516x128"
    assert {one.status for one in shape.candidates} == {"ok"}
    assert shape.winners


def test_what_does_not_compile_or_faults_on_silicon_fails_and_the_others_go_on(
    tmp_path, monkeypatch
):
    """A rung whose source breaks for two values, where the ranking does not compile it."""
    right = Variant.source.fget  # type: ignore[attr-defined]
    monkeypatch.setattr("toolkit.tuning.tuner.ranked", ranked_with(right))
    monkeypatch.setattr(Variant, "source", property(lambda self: broken(right(self))))
    found, _ = run(tmp_path)
    reasons = {one.label: str(one.reason) for one in found.shapes[0].candidates}
    assert "does not compile" in reasons["coarsened-1d"]
    assert "illegal memory access" in reasons["coarsened-1d:bk=8"]
    swept = {one.label: one.swept for one in found.shapes[0].candidates}["coarsened-1d:bk=16"]
    assert len(swept.samples_s) == 7
    assert found.shapes[0].winners


def broken(text):
    """The source of a rung with an error for BK = 4, and a fault for BK = 8."""
    head = text.index('extern "C"')
    body = text.index("{", head) + 1
    error = "\n#if BK == 4\n#error not today\n#endif\n"
    fault = "\n#if BK == 8\nC[1ull << 40] = 0.0f;\n#endif\n"
    return text[:head] + error + text[head:body] + fault + text[body:]


def ranked_with(source):
    """The ranking of rungs as they are."""

    def ranking(*arguments, **more):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Variant, "source", property(source))
            return ranked(*arguments, **more)  # type: ignore[arg-type]

    return ranking


def test_a_rung_of_tensor_maps_is_tuned_like_any_other(tmp_path):
    found, _ = run(tmp_path, "bulk-copy", measurements=1, finalists=1)
    assert found.shapes[0].winners
