"""Every command runs in an empty working folder, on a machine without a GPU."""

import pytest


@pytest.fixture(autouse=True)
def folder(no_gpu, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
