"""Names in the sentences of pages exist: commands, scripts, files that are linked."""

import re
import shlex

import pytest

from docs.snippets.pages import ROOT, blocks, name_of, pages, parsed
from tests.toolkit.cli.commands import invoke

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [*pages(), CONTRIBUTING, ROOT / "validation" / "README.md"]
PLACEHOLDER = re.compile(r"[A-Z]{3,}|NN_|\$|…|\.\.\.")  # stands for something: RUNG, NN_name
SCRIPT = re.compile(
    r"(?:benchmarks|tests|docs|kernels|toolkit|analysis|reports|validation)/[\w./]+\.(?:py|cu)"
)


def inline(page):
    """The pieces of a page's sentences."""
    for token in parsed(page.read_text(encoding="utf-8")):
        yield from token.children or []


def code(page):
    """All code of a page: inside of sentences, and each line of its blocks of commands."""
    yield from (re.sub(r"\s+", " ", t.content) for t in inline(page) if t.type == "code_inline")
    if page is not CONTRIBUTING:
        for block in blocks(page):
            if block.language in ("bash", "console"):
                yield from block.text.replace("\\\n", " ").splitlines()


def toolkit_calls(page):
    for text in code(page):
        for part in re.split(r"&&|\||>", text):
            _, called, words = part.partition("python -m toolkit ")
            if called and not PLACEHOLDER.search(words):
                yield words.strip()


CALLS = sorted({words for page in PAGES for words in toolkit_calls(page)})
NAMED = sorted(
    {
        (name_of(page), path)
        for page in PAGES
        for text in code(page)
        for path in SCRIPT.findall(text)
        if not PLACEHOLDER.search(path)
    }
)
# `path`: `name`, `name`
INSIDE = re.compile(r"`((?:toolkit|analysis|reports)/[\w/]+\.(?:py|c))`: ((?:`\w+`(?:, )?)+)")
DEFINED = sorted(
    {
        (path, name)
        for page in PAGES
        for path, names in INSIDE.findall(page.read_text(encoding="utf-8"))
        for name in re.findall(r"\w+", names)
    }
)
LINKED = sorted(
    {
        (name_of(page), str(token.attrs["href" if token.type == "link_open" else "src"]))
        for page in PAGES
        for token in inline(page)
        if token.type in ("link_open", "image")
    }
)


def test_commands_are_found():
    assert "profile --device h200 --shape 4096" in CALLS  # of a sentence in docs/gallery.md


@pytest.mark.parametrize("words", CALLS)
def test_commands_parse(words, monkeypatch):
    monkeypatch.setattr("typer.rich_utils.rich_format_help", lambda **_: None)  # 50 ms for each
    # --help after the rest: everything before it is parsed, nothing is run
    result = invoke("", *shlex.split(words, comments=True), "--help")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("page", "path"), NAMED)
def test_scripts_and_sources_that_are_named_exist(page, path):
    assert (ROOT / path).is_file(), f"{page} names {path}"


@pytest.mark.parametrize(("page", "target"), LINKED)
def test_links_lead_to_files(page, target):
    path = target.partition("#")[0]
    if path and not re.match(r"\w+:", path):
        assert ((ROOT / page).parent / path).exists(), f"{page} links {target}"


@pytest.mark.parametrize(("path", "name"), DEFINED)
def test_functions_and_classes_that_pages_name_are_defined(path, name):
    source = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(
        rf"^\s*(?:(?:def|class) {name}\b|(?:static )?\w+ {name}\()", source, re.MULTILINE
    )
