"""The table of kernels of public repositories is that of the record, and it passes its bar."""

from pathlib import Path
from statistics import median

from validation.public_sources.census import rows_of, table

ROOT = Path(__file__).parents[2]
ROWS = rows_of(ROOT / "validation/public_sources/recorded/sm_90.jsonl")


def test_the_page_shows_the_record():
    page = (ROOT / "docs/validation.md").read_text(encoding="utf-8")
    assert "\n".join(table(ROWS)) in page


def test_at_least_84_percent_execute_with_the_results_of_nvcc_and_start_within_a_second():
    counted = [row for row in ROWS if row["apart"] is None]
    ran = [row for row in counted if row["executes"] in ("executes", "fault", "too long")]
    assert len({(row["repository"], row["file"], row["kernel"]) for row in ROWS}) == 542
    assert len(ran) >= 0.84 * len(counted)
    assert not [
        row
        for row in counted
        if row["outputs"] not in ("equal", "rounding", "-") and row["outputs"] != "no cubin of nvcc"
    ]
    assert median(row["compile_s"] for row in ran) < 1
