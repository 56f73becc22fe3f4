"""Recordings of the tree have one record per line: the form of validation/recordings.py."""

import json

import pytest

from tests.processes import said
from validation import ROOT, recordings

PATHS = said(
    ["git", "ls-files", "-co", "--exclude-standard", "*/recorded/*.json", "tests/*.json"], cwd=ROOT
).splitlines()


@pytest.mark.parametrize("path", PATHS)
def test_a_recording_has_one_record_per_line(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert text == recordings.text_of(json.loads(text)), f"python -m validation.recordings {path}"


def test_records_are_on_lines_of_their_own_and_read_back():
    document = {
        "about": {"device": "H200"},
        "empty": [],
        "cells": [{"s": 1, "at": [2, 3]}, {}],
        "b": {"c": [[]]},
    }
    text = recordings.text_of(document)
    assert json.loads(text) == document
    assert text.splitlines() == [
        "{",
        ' "about":{"device":"H200"},',
        ' "empty":[],',
        ' "cells":[',
        '  {"s":1,"at":[2,3]},',
        "  {}",
        " ],",
        ' "b":{',
        '  "c":[',
        "   []",
        "  ]",
        " }",
        "}",
    ]


def test_a_method_that_measured_several_constants_is_there_once():
    methods = [{"unit": "cycles", "how": how} for how in ("a loop", "a chain")]
    of = (0, 1, 0)
    measured = {str(n): {"value": n, **methods[k]} for n, k in enumerate(of)}
    constants = {str(n): {"value": n, "method": k} for n, k in enumerate(of)}
    kept = {"device": "h200", "methods": methods, "constants": constants}
    assert recordings.with_methods_once({"device": "h200", "constants": measured}) == kept
    assert recordings.with_methods_once(kept) == kept
