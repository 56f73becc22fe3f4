"""Every command and snippet of README.md and docs/ is executed, and answers as it is shown."""

import re

import pytest

from docs.snippets.outcomes import needs_gpu, outcomes
from docs.snippets.pages import ROOT, blocks, name_of, pages
from tests.sampling import chosen_of

PAGES = [pytest.param(page, id=name_of(page)) for page in pages()]


def is_quick(page):
    """False for pages of commands that other tests execute too, at shapes that take less time."""
    slow = "ci|five_minutes|machines|one_launch|tensor_cores|trust|tuning|your_kernel"
    sources = "containers|frontends|launches|matrices|runtime|sources|textures"
    others = rf"guide/(\d|quickstart)|reference/commands|({slow})\.|sources/({sources})\."
    return not re.match(rf"README|docs/({others})", name_of(page))


@pytest.mark.parametrize("page", chosen_of(PAGES, is_quick))
def test_page_says_what_happens(page):
    assert_as_shown(page, gpu=False)


@pytest.mark.exhaustive  # test_readme.py holds its tables and claims
def test_readme_answers_as_it_shows(tmp_path):
    """Its first command and its Python. The exhaustive tests follow the whole page."""
    page = tmp_path / "README.md"
    text = ROOT.joinpath("README.md").read_text(encoding="utf-8")
    page.write_text(text.replace("```bash", "```text"), encoding="utf-8")
    assert_as_shown(page, gpu=False)


@pytest.mark.gpu
@pytest.mark.parametrize("page", [case for case in PAGES if needs_gpu(case.values[0])])
def test_page_says_what_happens_on_a_gpu(page):
    assert_as_shown(page, gpu=True)


def assert_as_shown(page, *, gpu):
    other = [outcome for outcome in outcomes(page, gpu=gpu) if not outcome.is_as_shown]
    assert not other, "\n\n".join(map(str, other)) + "\n\npython -m docs.update writes them anew"


def test_pages_are_found():
    names = [name_of(page) for page in pages()]
    assert "README.md" in names
    assert "docs/validation.md" in names
    assert not [name for name in names if "decisions" in name]


def test_what_is_not_executed_installs_or_needs_other_machines():
    left_out = [block for page in pages() for block in blocks(page) if block.reason_not_executed]
    assert left_out
    for block in left_out:
        assert "pip install" in block.text or "ray start" in block.text, block.where
