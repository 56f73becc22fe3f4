"""profile.json: what is written comes back equal, and anything else is refused in one line."""

import errno
import json
import os
import re
import types
from dataclasses import fields, is_dataclass, replace
from enum import EnumType
from pathlib import Path
from typing import Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.errors import InputError, RecordError
from analysis.records.profile import SCHEMA_VERSION, Interval, Profile
from analysis.timing.predicted import Resource
from tests.refusals import refusal
from toolkit.store.profile_json import load, save
from toolkit.store.user_files import check_writable, write_atomically


def filled(kind):
    """A value of a type, with every optional field filled."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return filled(next(argument for argument in arguments if argument is not type(None)))
    if origin is Literal or isinstance(kind, EnumType):
        return (arguments or list(kind))[0]
    if origin is tuple:
        return tuple(filled(item) for item in arguments if item is not Ellipsis)
    if origin is dict:
        return {filled(arguments[0]): filled(arguments[1])}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        values = {field.name: filled(hints[field.name]) for field in fields(kind) if field.init}
        if "schema_version" in values:
            values["schema_version"] = SCHEMA_VERSION
        return kind(**values)
    return {int: 7, float: 1.1, str: "Größe 32×32 \u2028 \x00 \\", bool: True, object: 7}[kind]


PROFILE = filled(Profile)
MINIMAL = replace(PROFILE, records=())
DAMAGED = ": the file was edited or damaged: make it again"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "profile.json"


def document(profile, path):
    save(profile, path)
    return json.loads(path.read_text(encoding="utf-8"))


def loaded(content, path):
    path.write_text(json.dumps(content), encoding="utf-8")
    return load(path)


def message_of(content, path):
    """Message with which loading refuses a file."""
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(RecordError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message.removeprefix(f"{path}: ")


def test_every_field_comes_back_equal(path):
    measured = PROFILE.records[0].measured
    assert measured.before is not None  # the profile of these tests is full
    save(PROFILE, path)
    assert load(path) == PROFILE


def test_absent_fields_come_back_absent(path):
    record = replace(PROFILE.records[0], theory=None, measured=None, check=None, rung=None)
    profile = replace(PROFILE, records=(record,))
    save(profile, path)
    assert load(path) == profile


def test_a_file_of_schema_4_has_no_conditions(path):
    assert PROFILE.conditions
    content = document(PROFILE, path) | {"schema_version": 4}
    del content["conditions"]
    assert loaded(content, path) == replace(PROFILE, schema_version=4, conditions=())


def test_the_phases_of_an_earlier_file_are_ignored(path):
    phases = {"extent": 4, "tile": 2, "loads": [{"phase": 0, "thread": 0, "matrix": "A"}]}
    assert loaded(document(PROFILE, path) | {"phases": phases}, path) == PROFILE


few = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20
)
POSSIBLE = st.floats(0, 1e6)


@given(st.lists(POSSIBLE, max_size=5), st.text())
@few
@example([5e-324, -0.0, 1e6, 0.1], "\ud7ff\ue000\U0010ffff\r\n\x00\ufeff")
def test_any_number_and_any_text_comes_back_equal(path, samples, note):
    (record,) = PROFILE.records
    measured = replace(record.measured, samples_s=tuple(samples))
    record = replace(record, measured=measured, notes=(note,))
    profile = replace(PROFILE, records=(record,))
    save(profile, path)
    assert load(path) == profile


def test_the_file_is_readable_text(path):
    save(PROFILE, path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[1] == f'  "schema_version": {SCHEMA_VERSION},'
    assert "32×32" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_never_written(value, path):
    (record,) = PROFILE.records
    measured = replace(record.measured, interval_s=Interval(low=0.0, high=value))
    with pytest.raises(
        RecordError, match=r"records\[0\]\.measured\.interval_s\.high: it is -?(nan|inf)"
    ):
        save(replace(PROFILE, records=(replace(record, measured=measured),)), path)
    assert not path.exists()


def test_a_profile_that_could_not_be_read_back_is_never_written(path):
    wrong = [{"seed": "7"}, {"records": []}, {"seed": {1}}, {"seed": 1j}]
    for change in wrong:
        assert "cannot be written" in refusal(RecordError, save, replace(PROFILE, **change), path)
    assert not path.exists()


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    assert f"No such file or directory: {tmp_path} has no .json file" in refusal(
        RecordError, load, tmp_path / "absent.json"
    )
    assert "it is a folder" in refusal(RecordError, load, tmp_path)
    assert "cannot be read" in refusal(RecordError, load, "a\0b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is not JSON: line 1, column 1: Expecting value"),
        ('{\n  "a": 1,\n  b}', "it is not JSON: line 3, column 3"),
        (b"{\xff}", "byte 1 is not UTF-8"),
        (b"\xff\xfe{\x00}\x00", "byte 0 is not UTF-8"),
        ("[]", "it is not a profile of this toolkit (it has no schema_version)"),
        ("1e999", "it is not a profile of this toolkit"),
        ('{"name": "package"}', "it is not a profile of this toolkit (it has no schema_version)"),
        ('{"schema_version": 7}', "it was written by a newer version (schema 7, this one reads 6)"),
        ('{"schema_version": 0}', "schema_version: it is 0, not 1 or more"),
        ('{"schema_version": true}', "schema_version: it is True"),
        ('{"schema_version": 1.0}', "schema_version: it is 1.0"),
        ('{"schema_version": "1"}', "schema_version: it is '1'"),
        ('{"schema_version": 6}', "created: it is missing (and "),
        ('{"schema_version": 3}', "it was written by an older version (schema 3, this one reads 4"),
        ('{"schema_version": 6, "schema_version": 6}', "the key 'schema_version' is given twice"),
        ('{"schema_version": 6, "seed": NaN}', "seed: it is nan, outside 0 to 3.40282e+38"),
        ('{"schema_version": 6, "seed": 1e999}', "seed: it is inf, outside 0 to"),
        ('{"schema_version": 6, "seed": ' + "9" * 60 + "}", "seed: it is 9999"),
        ('{"schema_version": 6, "seed": ' + "9" * 9999 + "}", "Exceeds the limit"),
        ('{"schema_version": ' + "9" * 4000 + "}", "it was written by a newer version"),
        ("[" * 100_000, "it is not a profile: it is nested too deeply"),
        ('{"schema_version": 6, "a": ' + "[" * 900 + "]" * 900 + "}", ""),
        ('{"schema_version": 6, "created": "\\ud800"}', ""),
    ],
)
def test_a_file_that_is_no_profile_is_refused(content, message, path):
    assert message_of(content, path).startswith(message)


def with_value(place, value, path):
    """The document of the full profile with a value at a place, as messages name it."""
    content = whole = document(PROFILE, path)
    *keys, last = [int(k) if k.isdigit() else k for k in re.findall(r"\w+", place)]
    for key in keys:
        content = content[key]
    content[last] = value
    return whole


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("records[0].measured.median_s", "fast", "should be a valid number, found 'fast'"),
        ("records[0].measured.samples_s[0]", True, "should be a valid number, found True"),
        ("records[0].shape.m", True, "should be a valid integer, found True"),
        ("records[0].shape.m", 1.0, "should be a valid integer, found 1.0"),
        ("records[0].shape.m", "7", "should be a valid integer, found '7'"),
        ("records[0].status", "fine", "should be 'ok', 'skipped' or 'failed', found 'fine'"),
        ("records[0].predicted.l2", "cold", "should be 'clean', 'dirty' or 'warm', found 'cold'"),
        ("records[0].predicted.bounds", None, "should be a valid array, found None"),
        (
            "records[0].predicted.bounds[0].name",
            7,
            f"should be {', '.join(map(repr, map(str, Resource)))}, found 7".replace(
                ", 'latency'", " or 'latency'"
            ),
        ),
        (
            "records[0].predicted.is_fitted",
            1,
            "should be a valid boolean, found 1",
        ),
        ("records[0]", [1], "should be an object, found [1]"),
        ("device.name", 3090, "should be a valid string, found 3090"),
    ],
)
def test_a_wrong_field_is_named_with_what_was_found(place, value, message, path):
    said = message_of(with_value(place, value, path), path)
    assert said == f"{place}: {message}{DAMAGED}"


@pytest.mark.parametrize(
    ("place", "value", "range_"),
    [
        ("records[0].measured.median_s", -1e-3, "0 to 1e+06"),
        ("records[0].measured.samples_s[0]", -1e-9, "0 to 1e+06"),
        ("records[0].measured.samples_s[0]", 1e7, "0 to 1e+06"),
        ("records[0].measured.samples_s[0]", float("nan"), "0 to 1e+06"),
        ("records[0].measured.flop_per_s", 1e19, "0 to 1e+18"),
        ("records[0].measured.before.temperature_c", -300.0, "-100 to 1000"),
        ("records[0].measured.before.sm_clock_hz", -1.0, "0 to 1e+12"),
        ("records[0].predicted.cycles", -1.0, "0 to 3.40282e+38"),
        ("records[0].predicted.bounds[0].time_s", -1e-9, "0 to 1e+06"),
        ("records[0].predicted.bounds[0].time_s", 1e7, "0 to 1e+06"),
        ("records[0].resources.registers_per_thread", 256, "0 to 255"),
        ("records[0].resources.local_bytes", -8, "0 to 1.15292e+18"),
        ("records[0].geometry.grid[2]", 0, "1 to 2.14748e+09"),
        ("records[0].occupancy.warps_per_sm", -1, "0 to 3.40282e+38"),
        ("device.sm_count", 0, "1 to 3.40282e+38"),
        ("device.boost_clock_hz", 0.0, "1 to 1e+12"),
        ("seed", -1, "0 to 3.40282e+38"),
    ],
)
def test_a_number_that_no_run_leaves_is_refused(place, value, range_, path):
    said = message_of(with_value(place, value, path), path)
    assert said == f"{place}: it is {value}, outside {range_}{DAMAGED}"


@pytest.mark.parametrize("value", [-1, 2**64 + 1])
def test_a_counter_that_no_run_leaves_is_refused(value, path):
    counted = {"counters": {"a.sum": 1, "b.sum": value}}
    content = with_value("records[0].counted", counted, path)
    assert message_of(content, path) == (
        f"records[0].counted.counters['b.sum']: it is {value}, outside 0 to 1.84467e+19{DAMAGED}"
    )


def test_a_missing_field_is_named(path):
    content = document(PROFILE, path)
    del content["records"][0]["shape"]["k"]
    assert message_of(content, path) == f"records[0].shape.k: it is missing{DAMAGED}"


def test_a_value_that_a_record_refuses_itself_is_told(path):
    content = with_value("records[0].shape.k", 0, path)
    assert "K = 0 is out of range" in message_of(content, path)


def test_a_long_wrong_value_is_shortened(path):
    assert len(message_of(with_value("seed", "x\n" * 10_000, path), path)) < 200


def test_a_byte_order_mark_and_an_unknown_field_do_no_harm(path):
    content = document(PROFILE, path)
    path.write_text("\ufeff" + json.dumps(content | {"later": 1}), encoding="utf-8")
    assert load(path) == PROFILE


@given(data=st.data())
@few
def test_a_profile_cut_short_is_refused(path, data):
    save(MINIMAL, path)
    content = path.read_bytes().rstrip()
    message_of(content[: data.draw(st.integers(0, len(content) - 1))], path)


def test_writing_replaces_the_whole_file(path):
    write_atomically(path, "long old content")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    write_atomically(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file_has_the_permissions_of_any_new_file(path):
    write_atomically(path, "x")
    other = path.with_name("other")
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(step, failure, path, monkeypatch):
    path.write_text("old")

    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    expected = KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else InputError
    with pytest.raises(expected):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link(path):
    link = path.with_name("link.json")
    link.symlink_to(path)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder, "it is a folder: give a file in it"),
        (lambda folder: folder / "absent" / "p.json", "there is no folder .*absent: create it"),
        (lambda folder: folder / "file" / "p.json", "there is no folder .*file: create it"),
        (lambda _: Path("/dev/null"), "it is not a regular file"),
        (lambda folder: folder / "loop", "loop: the link leads to itself: give another place"),
        (lambda _: Path("/proc/p.json"), "cannot write /proc/p.json: .*: give a place"),
        (lambda folder: folder / ("x" * 300), "File name too long"),
        (lambda folder: f"{folder}/a\0b", "null (byte|character)"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_and_after(make, message, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    place = make(tmp_path)
    for attempt in (check_writable, lambda place: write_atomically(place, "x")):
        with pytest.raises(InputError, match=message) as caught:
            attempt(place)
        assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


def test_a_read_only_file_system_is_told_with_the_path(path, monkeypatch):
    def refuse(self, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    for operation in ("touch", "open", "unlink"):  # Linux refuses to remove even what is absent
        monkeypatch.setattr(Path, operation, refuse)
    for attempt in (check_writable, lambda place: write_atomically(place, "x")):
        with pytest.raises(InputError, match=f"cannot write {path}: Read-only file system: give"):
            attempt(path)


def test_checking_a_place_changes_nothing(path):
    check_writable(path)
    assert not path.exists()
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_path_in_a_message_is_readable(path):
    content = document(PROFILE, path)
    content["environment"]["software"] = {"a key": 1}
    message = message_of(content, path)
    assert re.match(r"environment\.software\['a key'\]: should be a valid string", message)
