"""The text of a line, as tables show it."""

from reports.source_lines import line_text

SOURCE = """__global__ void k(float *x) {
    asm volatile(
        "ld.global.f32 %0, [%1];\\n"  // not the end )
        : "=f"(v)
        : "l"(x));
    asm("exit;"); int after;
    plasma(
      1);
}"""


def test_a_line_of_an_assembly_statement_is_shown_as_the_statement():
    whole = 'asm volatile( "ld.global.f32 %0, [%1];\\n" // not the end ) : "=f"(v) : "l"(x))'
    assert [line_text(SOURCE, number) for number in (3, 4, 5)] == [whole] * 3


def test_other_lines_are_shown_as_they_are():
    assert line_text(SOURCE, 2) == "asm volatile("
    assert line_text(SOURCE, 6) == 'asm("exit;"); int after;'
    assert line_text(SOURCE, 8) == "1);"


def test_a_line_that_is_not_there_has_no_text():
    assert [line_text(SOURCE, 0), line_text(SOURCE, 10), line_text(None, 1)] == ["", "", ""]
