"""Pages made here: what is executed, what counts as shown, and what is refused."""

import pytest

from docs.snippets.exchanges import exchanges, left_out_again, matches, printed_lines
from docs.snippets.outcomes import outcomes
from docs.snippets.pages import PageError, blocks
from docs.update import rewritten, update
from toolkit.cli import progress as view
from toolkit.cli.progress import SimulationProgress
from toolkit.execution.wall_time import WallTime

FENCE = "```"


@pytest.fixture
def page(tmp_path):
    return tmp_path / "page.md"


def written(page, *parts):
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def fence(language, *lines):
    return "\n".join((FENCE + language, *lines, FENCE))


def followed(page, *parts):
    return outcomes(written(page, *parts))


def refused(page, *parts):
    """Message of the error for a page with these parts."""
    with pytest.raises(PageError) as caught:
        followed(page, *parts)
    return str(caught.value)


def printed(page, *parts):
    return [outcome.printed for outcome in followed(page, *parts)]


class TestConsole:
    def test_each_command_has_its_answer(self, page):
        block = fence("console", "$ echo one; echo two >&2", "one", "two", "$ echo three", "four")
        first, second = followed(page, block)
        assert (first.shown, first.printed) == (("one", "two"), ("one", "two"))
        assert (second.shown, second.printed) == (("four",), ("three",))
        assert second.where == "page.md:5"  # below the fence and three lines
        assert not second.is_as_shown

    def test_a_backslash_continues_a_command(self, page):
        assert printed(page, fence("console", "$ echo one \\", "  two")) == [("one two",)]

    def test_a_failing_command_is_refused(self, page):
        said = refused(page, fence("console", "$ (exit 3)", "$ true"))
        assert "page.md:2: exit status 3 of (exit 3)" in said

    def test_a_page_may_show_an_exit_status(self, page):
        assert printed(page, fence("console", "$ (exit 3)", "$ echo $?", "3")) == [(), ("3",)]

    def test_a_shell_that_ends_is_refused(self, page):
        assert "the shell ended after 'exit 0'" in refused(page, fence("console", "$ exit 0"))

    def test_lines_above_the_prompt_are_refused(self, page):
        assert "begins with '$ '" in refused(page, fence("console", "nobody asked", "$ true"))

    def test_terminal_is_plain_and_100_wide(self, page, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        block = fence("console", "$ echo $COLUMNS $NO_COLOR $FORCE_COLOR")
        assert printed(page, block) == [("100 1",)]

    def test_files_of_the_checkout_are_at_hand(self, page):
        block = fence("console", "$ ls kernels/ladder.py", "$ python -m toolkit --version | wc -w")
        assert printed(page, block)[0] == ("kernels/ladder.py",)


class TestPython:
    def test_prompt_shows_what_a_prompt_shows(self, page):
        lines = (">>> for i in range(2):", "...     print(i)", "0", "1", ">>> 'text'", "'text'")
        first, second = followed(page, fence("pycon", *lines))
        assert first.is_as_shown
        assert second.is_as_shown

    def test_prompt_shows_an_error(self, page):
        (answer,) = printed(page, fence("pycon", ">>> 1 / 0"))
        assert answer[0] == "Traceback (most recent call last):"
        assert answer[-1] == "ZeroDivisionError: division by zero"

    def test_blocks_of_a_page_share_their_names(self, page):
        parts = (fence("python", "value = 41"), fence("pycon", ">>> value + 1", "42"))
        assert printed(page, *parts) == [("42",)]

    def test_pages_share_nothing(self, page):
        followed(page, fence("python", "value = 41"))
        assert "name 'value' is not defined" in refused(page, fence("python", "value"))

    def test_an_interpreter_that_ends_is_refused(self, page):
        assert "page.md:2: Python ended" in refused(
            page, fence("python", "import os", "os._exit(0)")
        )

    def test_a_block_that_hangs_is_stopped(self, page, monkeypatch):
        monkeypatch.setattr("docs.snippets.session.MOST_SECONDS", 0.5)
        assert "stopped after 0.5 s" in refused(page, fence("python", "while True: pass"))
        assert "not done after 0.5 s" in refused(page, fence("console", "$ sleep 60"))

    def test_comment_behind_a_print_says_what_it_prints(self, page):
        (outcome,) = followed(page, fence("python", "print(2 + 2)  # 5: a mistake"))
        assert (outcome.shown, outcome.printed) == (("5",), ("4",))
        assert not outcome.is_as_shown

    def test_code_and_commands_share_a_folder(self, page):
        parts = (
            fence("python", "open('kept.txt', 'w').write('kept')"),
            fence("console", "$ cat kept.txt"),
        )
        assert printed(page, *parts) == [("kept",)]


class TestScript:
    def test_nothing_of_it_is_compared(self, page):
        assert followed(page, fence("bash", "echo heard by nobody")) == []

    @pytest.mark.parametrize("line", ["false", "false | true", "echo $not_set"])
    def test_each_command_must_succeed(self, page, line):
        assert "page.md:2: exit status 1" in refused(page, fence("bash", line, "true"))


class TestRemarks:
    def test_block_becomes_a_file(self, page):
        shown = "<!-- file: deep/tile.cu -->\n" + fence("cuda", "int tile;")
        assert printed(page, shown, fence("console", "$ cat deep/tile.cu")) == [("int tile;",)]

    def test_a_file_of_python_is_not_executed(self, page):
        shown = "<!-- file: mine.py -->\n" + fence("python", "raise SystemExit(0)")
        assert printed(page, shown) == []

    def test_a_file_is_copied_from_the_repository(self, page):
        shown = "<!-- copy: LICENSE as mine.txt -->\n" + fence("console", "$ head -n 1 mine.txt")
        assert printed(page, shown) == [("MIT License",)]

    def test_what_needs_a_gpu_waits_for_one(self, page):
        block = "<!-- needs: gpu -->\n" + fence("console", "$ echo gpu")
        assert followed(page, block) == []
        assert [outcome.printed for outcome in outcomes(page, gpu=True)] == [("gpu",)]

    def test_without_a_gpu_none_is_seen(self, page):
        block = fence("console", '$ echo "${CUDA_VISIBLE_DEVICES-all}"')
        assert printed(page, block) == [()]

    def test_a_reason_keeps_a_block_from_running(self, page):
        followed(page, "<!-- not executed: it would\nfail -->\n" + fence("bash", "false"))
        assert [block.reason_not_executed for block in blocks(page)] == ["it would\nfail"]

    def test_remark_of_another_block_does_not_count(self, page):
        parts = ("<!-- not executed: it fails -->", "A sentence.", fence("bash", "false"))
        assert "exit status 1" in refused(page, *parts)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (fence("", "true"), "a block of ''; use one of console, bash"),
        (fence("sh", "true"), "a block of 'sh'"),
        (fence("py", "true"), "a block of 'py'"),
        ("<!-- not executed: -->\n" + fence("bash", "true"), "<!-- not executed:  -->"),
        ("<!-- neds: gpu -->\n" + fence("bash", "true"), "<!-- neds: gpu -->; use needs"),
        ("<!-- needs: fpga -->\n" + fence("bash", "true"), "'fpga' is not of gpu"),
        ("<!-- file: ../x -->\n" + fence("text", "true"), "outside of the page's folder"),
        ("<!-- copy: nothing -->\n" + fence("bash", "true"), "is not 'FILE OF THE REPOSITORY as"),
        ("````{figure} x.png\n" + fence("bash", "true") + "\n````", "is not seen"),
    ],
)
def test_rules_are_kept(page, block, words):
    with pytest.raises(PageError) as refused:
        blocks(written(page, block))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["a", "b"], ["a", "b"]),
        (["a"], ["a  "]),  # spaces that editors remove
        (["…"], ["a", "b"]),
        (["…", "c"], ["c"]),
        (["a", "…", "d"], ["a", "b", "c", "d"]),
        (["took … s"], ["took 1.25 s"]),
        (["1.25 s (a+b)"], ["1.25 s (a+b)"]),
    ],
)
def test_shown_is_what_was_printed(shown, printed):
    assert matches(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["a"], ["b"]),
        (["a"], ["a", "b"]),
        (["a", "b"], ["a"]),
        ([], ["a"]),
        (["a…"], ["b"]),
        (["took … s"], ["took 1.25 s", "and more s"]),  # inside of a line it ends with the line
        (["1.25"], ["1x25"]),
        (["…", "c"], ["c", "d"]),
    ],
)
def test_shown_is_not_what_was_printed(shown, printed):
    assert not matches(shown, printed)


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        (["old"], ["note", "title", "a 1", "b 2", "end"]),  # nothing was left out
        (["…", "title", "a 0", "b 2", "…"], ["…", "title", "a 1", "b 2", "…"]),
        (["…", "title", "…", "end"], ["…", "title", "…", "end"]),  # as it is
        (["…", "a 0", "…", "end"], ["note", "title", "a 1", "b 2", "end"]),  # which is not clear
        (["note", "ti…", "a 0", "b 2", "end"], ["note", "ti…", "a 1", "b 2", "end"]),
    ],
)
def test_what_was_left_out_is_left_out_again(shown, kept):
    printed = ["note", "title", "a 1", "b 2", "end"]
    assert list(left_out_again(shown, printed)) == kept


def test_blank_lines_stay_inside_of_an_answer():
    (first, second) = exchanges("console", "$ a\none\n\ntwo\n\n$ b\n")
    assert first.answer == ("one", "", "two")
    assert second.answer == ()


class TestUpdate:
    TEXT = (
        "- a list\n\n"
        "  ```console\n  $ echo one; echo two\n  one\n  three\n\n  $ echo 1.5 s\n  … s\n  ```\n"
    )

    def test_writes_what_came_and_keeps_what_fits(self, page):
        page.write_text(self.TEXT, encoding="utf-8")
        assert update(page, gpu=False, check=False)
        assert page.read_text("utf-8") == self.TEXT.replace("three", "two")

    def test_check_writes_nothing(self, page, capsys):
        page.write_text(self.TEXT, encoding="utf-8")
        assert not update(page, gpu=False, check=True)
        assert page.read_text("utf-8") == self.TEXT
        said = capsys.readouterr()
        assert "2 answers, 1 not as shown" in said.out
        assert "page.md:4: echo one; echo two\nshown:\none\nthree\nprinted:\none\ntwo" in said.err

    def test_answers_grow_and_shrink(self, page):
        written(page, fence("console", "$ seq 3", "$ true", "gone", "$ echo x", "x"))
        text = rewritten(page.read_text("utf-8"), outcomes(page))
        assert text == fence("console", "$ seq 3", "1", "2", "3", "$ true", "$ echo x", "x") + "\n"

    def test_a_comment_is_not_rewritten(self, page):
        text = written(page, fence("python", "print(2)  # 3")).read_text("utf-8")
        assert not update(page, gpu=False, check=False)
        assert page.read_text("utf-8") == text

    def test_an_error_that_the_page_does_not_show_is_not_written(self, page):
        text = written(page, fence("pycon", ">>> 1 / 0", "0")).read_text("utf-8")
        with pytest.raises(PageError, match=r"1 / 0 raised an error:\n(?s:.*)ZeroDivisionError"):
            update(page, gpu=False, check=False)
        assert page.read_text("utf-8") == text

    def test_an_error_that_the_page_shows_is_an_answer(self, page):
        raised = "Traceback (most recent call last):"
        shown = fence("pycon", ">>> 1 / 0", raised, "  …", "ZeroDivisionError: division by zero")
        written(page, shown)
        assert update(page, gpu=False, check=False)


@pytest.mark.parametrize("blocks", [20, 200])
@pytest.mark.parametrize(("seconds", "is_least"), [(150.0, False), (7200.0, True), (0.2, True)])
def test_messages_on_the_remaining_time_are_no_answer(capsys, blocks, seconds, is_least):
    with SimulationProgress("k.cu") as progress:
        progress.announce(WallTime(blocks, seconds, is_least=is_least))
    said = capsys.readouterr().err
    assert said.strip()
    assert printed_lines(f"{said}20 blocks\n") == ("20 blocks",)


def test_the_number_of_blocks_that_are_left_is_no_answer(monkeypatch, capsys):
    with SimulationProgress("k.cu") as progress:
        for now_s, done in ((100.0, 1), (103.5, 2)):
            monkeypatch.setattr(view.time, "monotonic", lambda now_s=now_s: now_s)
            progress.advance(done, 100)
        monkeypatch.undo()
    said = capsys.readouterr().err
    assert said.startswith("98 of 100 blocks are left")
    assert printed_lines(said) == ()
