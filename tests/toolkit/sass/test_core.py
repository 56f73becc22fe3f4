"""The native core, as it is found and loaded."""

from __future__ import annotations

import pytest

from analysis.errors import UnavailableError
from toolkit.sass import core


def test_a_core_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_sources", lambda: "0" * 64)
    with pytest.raises(UnavailableError, match=r"built from other sources: .* pip install"):
        core.library.__wrapped__()


def test_a_core_without_its_sources_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_sources", lambda: None)
    assert core.library.__wrapped__()
