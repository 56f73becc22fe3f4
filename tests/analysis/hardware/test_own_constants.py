"""Constants from a file of the microbenchmarks: how they follow, and what is said of the others."""

import copy
import json
from dataclasses import replace

import pytest

from analysis.devices import DEVICES
from analysis.errors import InputError
from analysis.hardware.own_constants import NOMINAL, NOT_DETERMINED, RULES, own_constants
from analysis.hardware.sm_constants import CONSTANTS, NAMES, constants_of
from analysis.timing.explained import named
from benchmarks.timing_tables import not_determined, rules
from toolkit.microbenchmarks import contention, irregular, launch, waiting
from toolkit.microbenchmarks.__main__ import MODULES
from validation import ROOT, recordings

RUN, ON_AN_H100 = (
    recordings.read(ROOT / f"validation/timing/recorded/constants_{gpu}.json")
    for gpu in ("h200", "h100")
)
YOUNGER = (contention, irregular, launch, waiting)
# a later run of an H200 has the tensor cores
OF_TENSOR_CORES = recordings.read(ROOT / "validation/timing/recorded/tensor_constants_h200.json")
RUN["constants"] |= OF_TENSOR_CORES["constants"]
# Some benchmarks that rules take are younger than one of the two recorded runs
OF_RULES = {path.partition("/")[0] for rule in RULES.values() for path in rule.results}
LATER = OF_RULES & {one.name for module in YOUNGER for one in module.BENCHMARKS}
for run, other in ((RUN, ON_AN_H100), (ON_AN_H100, RUN)):
    names = LATER - run["constants"].keys()
    run["constants"] |= {name: other["constants"][name] for name in names}
H200, H100, RTX_3090 = (DEVICES[key] for key in ("h200", "h100-sxm", "rtx-3090"))
BENCHMARKS = {one.name: one for module in MODULES for one in module.BENCHMARKS}
DOCUMENT = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")


def changed(**changes):
    """The recorded run with other results, None for one that is absent."""
    document = copy.deepcopy(RUN)
    for name, value in changes.items():
        if value is None:
            del document["constants"][name]
        else:
            document["constants"][name]["value"] = value
    return document


def of_rtx_3090():
    """The recorded run as if it were of another architecture."""
    about = {"architecture": "sm_86", "device": "rtx-3090", "name": "NVIDIA GeForce RTX 3090"}
    return RUN | about


def with_own(device, document):
    return replace(device, constants=own_constants(document, "mine.json", device))


def test_each_constant_has_a_rule_or_a_reason_why_not():
    assert RULES.keys() | NOT_DETERMINED.keys() == NAMES.keys()
    assert not RULES.keys() & NOT_DETERMINED.keys()


def test_rules_take_results_that_the_benchmarks_have():
    assert OF_RULES - {NOMINAL} <= BENCHMARKS.keys()


def test_the_recorded_run_gives_about_the_constants_that_ship():
    """By one run alone; those that ship are rounded, and some are of several loops."""
    found = own_constants(RUN, "mine.json", H200)
    assert (found.file, found.gpu, found.lacks) == ("mine.json", "NVIDIA H200 SXM 141 GB", ())
    assert found.values.keys() == RULES.keys()
    for name, value in found.values.items():
        assert value == pytest.approx(CONSTANTS["sm_90"].entries[name].value, rel=0.035), name
    assert found.values["register_latency"] == 3  # (32 - 23) / 3
    assert found.values["barrier_per_warp"] == 2  # (76.3 - 44.3) / 16
    assert found.values["units.FMA"] == 2  # 1.01, on one of two pipes
    assert found.values["request_clocks"] == 1  # 1.0005: three digits


def test_a_run_of_today_determines_all_of_them():
    found = own_constants(ON_AN_H100, "mine.json", H100)
    tensor = {k for k, r in RULES.items() if set(r.results) & OF_TENSOR_CORES["constants"].keys()}
    assert set(found.lacks) == tensor  # that run is older than their benchmarks
    assert found.values["write_bytes_per_clock"] == 15.9  # 128 / 8.07
    assert found.values["dram_efficiency"] == 0.927  # 2^29 / (176.0 - 3.2 µs) / 3.352e12
    assert found.values["block_interval"] == 89  # 2,848 / 32


def test_where_one_pipe_makes_all_products_there_are_no_halves():
    two = changed(ffma_issue_cycles=2.0, ffma_beside_imad_issue_cycles=2.0)
    found = own_constants(two, "mine.json", H200).values
    assert (found["fma_halves"], found["units.FMA"]) == (1, 2)


def test_own_constants_take_the_place_of_those_of_the_architecture():
    device = with_own(H200, changed(l1_hit_latency_cycles=40.4))
    constants = constants_of(device)
    assert (constants.l1_latency, type(constants.l1_latency)) == (40, int)
    assert constants.entries["l1_latency"].source == "NVIDIA H200 SXM 141 GB (mine.json)"
    assert constants.entries["l1_latency"].kind == "measured"
    assert constants.dram_latency == 270  # fitted: no benchmark gives it
    assert constants_of(H200) is CONSTANTS["sm_90"]


def test_constants_read_back_from_json_have_their_types():
    own = own_constants(RUN, "mine.json", H200)
    values = json.loads(json.dumps({name: float(value) for name, value in own.values.items()}))
    device = replace(H200, constants=replace(own, values=values))
    assert constants_of(device) == replace(constants_of(with_own(H200, RUN)), own=device.constants)
    assert type(constants_of(device).l1_latency) is int


def test_the_basis_says_what_is_measured_and_what_is_taken_over():
    assert named(constants_of(with_own(RTX_3090, of_rtx_3090()))) == (
        "sm_86 (63 of 96 measured on NVIDIA GeForce RTX 3090, mine.json; taken over from sm_90: "
        "bank_count, dram_latency, branch_clocks, fetch_latency, product_latency, "
        "product_latency_of_registers, product_release, bypass_clocks, whole_line_bytes, "
        "l2_line_bytes, write_slots, least_product_clocks, miss_clocks, "
        "dram_scatter, dram_spread, code_bytes, cached_code_bytes, flag_latency, "
        "merged_l2_bytes_per_clock, atomic_window; "
        "not measured on any GPU: units.CONTROL, units.UNIFORM, units.LSU, latencies.UNIFORM, "
        "latencies.CONTROL; mechanisms left out: lookup_clocks, fill_share, dirty_start_s)"
    )


def test_an_incomplete_file_gives_what_it_has_and_says_what_it_lacks():
    document = changed(lds_32_latency_cycles=None, sts_128_one_scheduler_cycles=None)
    document["constants"]["dfma_issue_cycles"] = {"value": None, "error": "CUDA error"}
    device = with_own(H200, document)
    lacks = ("operand_clocks", "register_latency", "shared_latency", "units.FP64")
    assert device.constants.lacks == lacks
    assert constants_of(device).shared_latency == CONSTANTS["sm_90"].shared_latency
    assert named(constants_of(device)).endswith(f"absent from mine.json: {', '.join(lacks)})")


def test_the_bandwidth_of_another_gpu_is_compared_with_its_own():
    on_h100 = copy.deepcopy(RUN)
    constants = on_h100["constants"]
    times = constants["dram_read_bytes_per_s"]["detail"]
    launch_s = constants["empty_kernel_256_threads_s"]["value"]
    times["seconds"] = times["bytes"] / (0.9 * H100.dram_bytes_per_s) + launch_s
    on_h100 |= {"device": "h100-sxm", "name": "NVIDIA H100 SXM5 80 GB"}
    assert own_constants(on_h100, "f", H200).values["dram_efficiency"] == pytest.approx(0.9)
    unknown = on_h100 | {"device": "nvidia-h20", "name": "NVIDIA H20"}
    assert own_constants(unknown, "f", H200).lacks == ("dram_efficiency",)


LIKE = "give what `python -m toolkit.microbenchmarks --output FILE` wrote"
REFUSED = [
    ([], f"no measured constants: {LIKE}"),
    ({"schema_version": 6, "records": []}, f"no measured constants: {LIKE}"),
    (RUN | {"schema_version": 2}, "schema_version = 2, this version reads 1: measure again"),
    (
        of_rtx_3090(),
        "its constants are of sm_86 (NVIDIA GeForce RTX 3090), and NVIDIA H200 SXM 141 GB is of "
        "sm_90: measure such a GPU, or choose a device of sm_86",
    ),
    (RUN | {"constants": {}}, f"it determines no constant: {LIKE}, of a whole run"),
    (
        changed(imad_issue_cycles="2"),
        f"imad_issue_cycles is not a number above 0: {LIKE}, unedited",
    ),
    (
        changed(imad_issue_cycles=float("nan")),
        f"imad_issue_cycles is not a number above 0: {LIKE}, unedited",
    ),
    (
        changed(imad_issue_cycles=1e9),
        "units.FMA_HEAVY would be 1e+09, usually it is 2: measure imad_issue_cycles again",
    ),
    (
        changed(lds_128_latency_cycles=20.0),
        "register_latency would be -1, usually it is 3: measure lds_128_latency_cycles, "
        "lds_32_latency_cycles again",
    ),
]


@pytest.mark.parametrize(("document", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_cannot_be_used_is_refused_in_one_line(document, message):
    with pytest.raises(InputError) as found:
        own_constants(document, "mine.json", H200)
    assert str(found.value) == f"mine.json: {message}"


def test_the_document_has_the_rules_of_the_code():
    """After a change: python -m benchmarks.timing_tables prints the tables."""
    assert "\n".join(rules()) in DOCUMENT
    assert "\n".join(not_determined()) in DOCUMENT
