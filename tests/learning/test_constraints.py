"""Which lines constrain, and how a mark is read."""

from datetime import UTC, date, datetime

import pytest

from hermes_agent.learning.constraints import added, cut_out, ends_at, guessed_check, lines_of, sort_of, without_marks
from hermes_agent.store.learning.lessons import Sort
from hermes_agent.store.versions import Kind

MARK = "[in: this machine; check: command -v jq; until: 2026-12-24]"


def line(text: str):
    (found,) = lines_of(Kind.SKILL, text)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "jq does not work here.",
        "`docker` isn't installed.",
        "The web_search tool is unavailable.",
        "bash: jq: command not found",
        "Playwright is completely broken on this host.",
        "The terminal can\u2019t be used",
        "You cannot use the network.",
        "There is no network in this place.",
        "The browser tools do not work.",
        "npm install always fails.",
    ],
)
def test_what_does_not_work_is_recognised(text: str):
    assert line(text).fails
    assert sort_of(line(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "Do not use tabs.",
        "Never run the tests in parallel.",
        "- Avoid long replies.",
        "You should not call the API directly.",
        "Don\u2019t ever rely on it: don't trust the cache.",
    ],
)
def test_what_is_ruled_out_is_recognised(text: str):
    assert line(text).forbids
    assert not line(text).fails
    assert sort_of(line(text)) is Sort.PREFER


@pytest.mark.parametrize(
    "text",
    [
        "Run `make all`, then look at the result.",
        "Do not forget the changelog.",
        "It is not worth more than two tries.",
        "The tests run with pytest.",
        "If `.venv` is missing, run `make venv`.",
        "What cannot be checked is said so.",
    ],
)
def test_what_is_to_be_done_constrains_nothing(text: str):
    found = line(text)
    assert not found.fails
    assert sort_of(found) is None
    assert not found.here


@pytest.mark.parametrize("text", ["Node 18 is installed.", "It listens on 8080.", "The database is on port 5433."])
def test_what_is_so_on_a_machine_is_recognised(text: str):
    assert line(text).here


def test_a_mark_is_read_and_left_out_of_the_words():
    found = line(f"- jq is not installed. {MARK}")
    assert found.words == "- jq is not installed."
    assert (found.mark.scope, found.mark.check, found.mark.until) == (
        "this machine",
        "command -v jq",
        date(2026, 12, 24),
    )
    assert sort_of(found) is Sort.AVOID
    assert sort_of(line(f"Node 18 is installed. {MARK}")) is Sort.FACT
    assert sort_of(line("x [in: a; check: [ -e /x ] && echo; until: 2026-12-24].")) is Sort.AVOID
    assert without_marks(f"one\n- jq is gone. {MARK}\ntwo") == "one\n- jq is gone.\ntwo"


@pytest.mark.parametrize("mark", ["[in: here; until: 2026-12-24]", "[in: here; check: true; until: soon]", "[in: here"])
def test_a_mark_that_is_none_says_so(mark: str):
    assert line(f"jq is not installed {mark}").mark is None
    assert bool(line(f"jq is not installed {mark}").broken) == ("; " in mark or "[in: " in mark)


def test_of_a_failure_the_missing_program_is_checked_for():
    for text in ("`jq` is not installed.", "bash: jq: command not found", "jq isn't available here", "jq is missing"):
        assert guessed_check(line(text)) == "command -v jq"
    assert guessed_check(line("The browser does not work.")) == ""


def test_a_failure_in_one_case_is_no_failure_ever():
    assert line("npm ci does not work.").fails_ever
    assert not line("npm ci does not work without a lock file.").fails_ever
    assert not line("If jq is missing, use python.").fails_ever


def test_only_new_lines_outside_of_code_count():
    text = "Step one.\n\n```sh\necho 'jq: command not found'\n```\nAvoid jq.\n"
    assert [each.whole for each in lines_of(Kind.SKILL, text)] == ["Step one.", "Avoid jq."]
    assert [each.whole for each in added(Kind.SKILL, "Step one.\n", text)] == ["Avoid jq."]
    assert [each.whole for each in lines_of(Kind.MEMORY, "one\nmore\n§\ntwo\n")] == ["one\nmore", "two"]


def test_a_constraint_is_cut_out_as_it_stands():
    assert cut_out("a\n  - Avoid jq.\nb", "- Avoid jq.") == ("  - Avoid jq.",)


def test_the_last_day_is_whole():
    assert datetime.fromtimestamp(ends_at(date(2026, 12, 24)), UTC).isoformat() == "2026-12-25T00:00:00+00:00"


@pytest.mark.parametrize("words", ["if it is not installed ", "[in: a; check: b ", "it is not here and "])
def test_a_very_long_line_is_read_in_proportion_to_its_length(words: str):
    [line] = lines_of(Kind.SKILL, words * 4_000)  # Minutes where each part is held against each other one.

    assert not line.fails
    assert line.mark is None


def test_what_is_far_back_in_a_long_sentence_is_found():
    [line] = lines_of(Kind.SKILL, f"{'a word and ' * 200}the browser tool does not work at all")

    assert line.fails
    assert line.fails_ever
