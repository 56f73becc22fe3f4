"""Times and rates in the sentences of the guide are those of the outputs beside them."""

import re

import pytest

from docs.snippets.exchanges import exchanges
from docs.snippets.pages import EXECUTED, ROOT, blocks
from validation.timing.published_times import publications

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "TFLOP/s": 1e12, "GFLOP/s": 1e9}
UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
NUMBER = r"\d[\d,]*(?:\.\d+)?"
# "2.90 to 2.69 ms": the unit is of both
QUANTITY = re.compile(rf"((?:{NUMBER}(?:, | and | to | → ))*{NUMBER}) ({UNIT})(?![\w/])")
SHARE = re.compile(rf"({NUMBER}) % of the time")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
DECIMAL = re.compile(r"(?<![\d.,])\d+\.\d+(?![\d.]| ?[\w%])")
LINK = re.compile(r"\]\((\.\./[\w.]+\.md)\)")


def quantities(text):
    """(number, unit) of each time and each rate."""
    for numbers, unit in QUANTITY.findall(" ".join(text.split())):
        for number in re.findall(NUMBER, numbers):
            yield number.rstrip(",").replace(",", ""), unit


def is_rounded(number, unit, value):
    """True if a number, with its digits, is a rounded value in SI units."""
    decimals = len(number.partition(".")[2])
    return abs(value / UNITS[unit] - float(number)) <= 0.5 * 10**-decimals * (1 + 1e-9)


def outputs(page):
    """All that the page's commands and statements answer."""
    found = [block for block in blocks(page) if block.language in ("console", "pycon")]
    assert all(block.language in EXECUTED for block in found)
    answers = (one.answer for block in found for one in exchanges(block.language, block.text))
    return "\n".join(line for answer in answers for line in answer)


def known(page, prose):
    """(unit, value in SI units) of the outputs, of pages that are linked to, and published."""
    linked = "\n".join((page.parent / name).read_text("utf-8") for name in LINK.findall(prose))
    shown = outputs(page) + outputs(page.parent / "index.md")  # the table of ceilings
    found = [(unit, float(n) * UNITS[unit]) for n, unit in quantities(f"{shown}\n{linked}")]
    # what Python answers is in s or GFLOP/s, and a table of rates has its unit above it
    bare = [(unit, n) for n in DECIMAL.findall(shown) for unit in ("s", "GFLOP/s")]
    bare += [("TFLOP/s", n) for n in DECIMAL.findall(linked)]
    times = (t for of in publications() for timing in of.timings for t in timing.seconds)
    return [
        *found,
        *((unit, float(n) * UNITS[unit]) for unit, n in bare),
        *(("s", t) for t in times),
    ]


every_page = pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in GUIDE])


@every_page
def test_times_and_rates_of_sentences_stand_in_an_output(page):
    prose = FENCED.sub("", page.read_text("utf-8"))
    values = known(page, prose)
    unfounded = {
        f"{number} {unit}"
        for number, unit in quantities(prose)
        if not any(
            is_rounded(number, unit, value)
            for of, value in values
            if ("FLOP" in of) == ("FLOP" in unit)
        )
    }
    assert unfounded == set()


@every_page
def test_shares_of_the_time_stand_in_an_output(page):
    prose = " ".join(FENCED.sub("", page.read_text("utf-8")).split())
    shown = [float(share) for share in re.findall(rf"({NUMBER}) %", outputs(page))]
    unfounded = {
        share
        for share in SHARE.findall(prose)
        if not any(is_rounded(share, "s", value) for value in shown)
    }
    assert unfounded == set()


def test_a_number_that_is_nowhere_is_found():
    assert list(quantities("from 2.90 to\n2.69 ms, 7 slots")) == [("2.90", "ms"), ("2.69", "ms")]
    assert list(quantities("7,490 GFLOP/s and 21 %")) == [("7490", "GFLOP/s")]
    assert is_rounded("2.69", "ms", 2.6904e-3)
    assert is_rounded("3", "µs", 3.1e-6)
    assert not is_rounded("2.70", "ms", 2.6904e-3)
