"""Machine files: what is wrong with one is said in one line with file, key, value and remedy."""

import pytest

from analysis.errors import InputError
from analysis.hardware.machine_file import FitError, MachineEntry
from analysis.hardware.sm_constants import CONSTANTS, FOLDER, read_machine

FILE = "sm_90.toml"
TEXT = (FOLDER / FILE).read_text(encoding="utf-8")
LAUNCH = next(line for line in TEXT.splitlines() if line.startswith("launch_s ="))


def changed(before, after):
    assert TEXT.count(before) == 1
    return TEXT.replace(before, after)


def test_a_machine_file_is_read():
    constants = read_machine(TEXT, FILE)
    assert constants == CONSTANTS["sm_90"]
    assert constants.entries["launch_s"] == MachineEntry(
        value=2.7e-6,
        unit="s",
        kind="measured",
        source="H200, CUDA 13.0: an empty kernel, warm",
        command="python -m toolkit.microbenchmarks --only empty_kernel_256",
    )
    select, fit = constants.entries["miss_clocks"].errors
    assert select == FitError(
        part="select h200", launches=3, with_it=0.1342, without_it=0.1192
    )  # of validation/timing/recorded/rule_errors.json
    assert (fit.part, fit.launches) == ("fit h200", 10)
    assert constants.entries["flag_latency"].errors[0] == FitError(part="select h200", launches=0)


def test_a_whole_number_may_stand_for_a_fraction():
    constants = read_machine(changed("value = 2.7e-06", "value = 0"), FILE)
    assert (constants.launch_s, type(constants.launch_s)) == (0.0, float)


BAD = {
    "= 1\n= 2": "not TOML: Invalid statement (at line 1, column 1): correct that line",
    TEXT.replace('"sm_90"', '"sm_91"', 1): "architecture = 'sm_91': give 'sm_90', as the file is "
    "named",
    changed(LAUNCH, ""): "launch_s is missing: add it, with value, unit, kind, source; the kind "
    "may be 'not measured'",
    changed(LAUNCH, "launch_s = 2.7e-6"): "launch_s = 2.7e-06: give a table with value, unit, "
    "kind, source",
    changed("launch_s =", "launch =") : "unknown constant 'launch': did you mean 'launch_s'",
    changed("[latencies]", "[latency]"): "unknown constant 'latency': did you mean",
    changed("value = 2.7e-06", "value = nan"): "launch_s.value = nan: give a number of at least 0",
    changed("value = 2.7e-06", "value = -1"): "launch_s.value = -1: give a number of at least 0",
    changed("value = 283", "value = 283.5"): "l2_latency.value = 283.5: give a whole number of at "
    "least 0",
    changed("value = 283", "value = true"): "l2_latency.value = True: give a whole number of at "
    "least 0",
    changed('value = 283, unit = "clocks"', "value = 283"): "l2_latency.unit is missing: add it",
    changed('value = 283, unit = "clocks"', "value = 283, unit = 1"): "l2_latency.unit = 1: give a "
    "text",
    changed('value = 283, unit = "clocks", kind = "measured"', 'value = 1, unit = "clocks", '
    'kind = "guessed"'): "l2_latency: unknown kind 'guessed': choose one of measured, fitted, "
    "documented, taken over, not measured",
    changed('value = 283, unit = "clocks", kind = "measured"', 'value = 1, unit = "clocks", '
    'kind = "fitted"'): "l2_latency.instead is missing: add it, as its kind is 'fitted'",
    changed("value = 283,", "value = 283, valeu = 1,"): "l2_latency: unknown key 'valeu': did you "
    "mean 'value'",
    changed("launches = 30, with = 0.0986,", "launches = 30,"): "dram_latency.errors.with is "
    "missing: add it",
    changed('{ part = "select h200", launches = 30, with = 0.0986, without = 0.1450 },', "1,"):
    "dram_latency.errors = [1, {'part': 'fit h200', 'launches': 44,",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=BAD.values())
def test_what_is_wrong_is_said_in_one_line(text, message):
    with pytest.raises(InputError) as found:
        read_machine(text, FILE)
    assert str(found.value).startswith(f"{FILE}: {message}")
    assert "\n" not in str(found.value)
