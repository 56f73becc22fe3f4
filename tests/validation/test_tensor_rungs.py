"""The recording of the rungs on tensor cores holds what is claimed of them."""

import json

import pytest

from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.product_errors import DATA_CLASSES
from kernels.selection import parse_selection
from toolkit.execution.rung_errors import LARGEST, errors_of_rung
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload
from validation import recordings
from validation.tensor_rungs.__main__ import RECORDING, TENSOR, recorded, tables

FOUND = recordings.read(RECORDING)
MODELLED = TENSOR[:2]  # of one kernel


@pytest.mark.parametrize("label", MODELLED)
def test_times_are_predicted_within_ten_percent(label):
    times = {row["shape"]: row for row in FOUND["times"] if row["label"] == label}
    assert times.keys() >= {
        "128x128x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096"
    }  # fmt: skip
    for row in times.values():
        assert abs(row["predicted_s"] / row["measured_s"] - 1) <= 0.10


@pytest.mark.parametrize("label", TENSOR)
def test_each_is_more_accurate_than_cublas_on_normal_and_uniform_numbers(label):
    rms = {(row["label"], row["data"], row["shape"]): row["rms"] for row in FOUND["errors"]}
    for data in ("normal", "uniform"):
        of = rms[label, data, "2048x2048x2048"]
        assert of <= 0.5 * rms["cublas", data, "2048x2048x2048"]


def test_every_class_was_measured():
    for label in (*TENSOR, "cublas"):
        found = {
            row["data"]
            for row in FOUND["errors"]
            if (row["label"], row["shape"]) == (label, "2048x2048x2048")
        }
        assert found == set(DATA_CLASSES)


def test_the_tables_have_a_row_for_each_time_and_class():
    lines = list(tables(FOUND))
    assert sum(line.startswith(TENSOR) for line in lines) >= 10
    assert [line.split()[0] for line in lines[-len(DATA_CLASSES) :]] == list(DATA_CLASSES)


def test_rates_of_the_benchmark_are_recorded_with_their_shape(tmp_path):
    rates = tmp_path / "sustained.json"
    rates.write_text(json.dumps({"shape": "64x64x64", "rows": [{"name": "cublas"}]}))
    assert recorded([rates])["rates"] == [{"shape": "64x64x64", "name": "cublas"}]


@pytest.mark.parametrize("label", MODELLED)
def test_the_simulator_has_the_errors_of_the_gpu(label):
    """To all digits: tensor cores are executed bit for bit."""
    shape = parse_shape("128x128x512")
    assert shape == LARGEST
    of_gpu = {
        row["data"]: (row["rms"], row["maximum"], row["elements"])
        for row in FOUND["errors"]
        if (row["label"], row["shape"]) == (label, str(shape))
    }
    selection = parse_selection(label)
    kernel = compile_for(find_device("h200"), selection)
    found = errors_of_rung(kernel, selection, Workload(shape, FOUND["about"]["seed"]))
    assert {one.data: (one.rms, one.maximum, one.elements) for one in found} == of_gpu


def test_a_label_with_two_errors_of_a_class_is_refused():
    """The same error twice is none: two profiles of the recording have cuBLAS."""
    row = next(row for row in FOUND["errors"] if row["shape"] == "2048x2048x2048")
    list(tables({**FOUND, "errors": [*FOUND["errors"], row]}))
    other = {**row, "rms": 2 * row["rms"]}
    with pytest.raises(ValueError, match=f"{row['label']}, {row['data']}, 2048x2048x2048"):
        list(tables({**FOUND, "errors": [*FOUND["errors"], other]}))
