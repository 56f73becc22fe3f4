"""Every command runs in an empty working folder, on a machine without a GPU."""

import pytest


@pytest.fixture(autouse=True)
def folder(no_gpu, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def without_remedies(monkeypatch):
    """`simulate` tries no edits of the kernel: test_remedies.py has the command with them."""
    monkeypatch.setattr("toolkit.cli.remedies.with_remedies", lambda simulated: simulated)
