"""`hermes logs`: every line of the home's log, by session, run and level."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from hermes_agent.cli.commands.logs import LineFilter, Reader, line_as_json, lines, shown
from tests.cli.shell import typed


def test_the_lines_of_a_home_are_shown(tmp_path: Path):
    assert typed(tmp_path, "logs").out == "Nothing yet.\n"
    assert typed(tmp_path, "logs", "--json").out == ""

    (tmp_path / "logs").mkdir(exist_ok=True)
    line = {"time": "2026-05-01T12:00:00.000+00:00", "level": "info", "part": "runs", "session": "s1", "run": "r1"}
    bad = line | {"level": "error", "run": "r2", "text": "tool fetch: refused, 0.0 s"}
    (tmp_path / "logs/hermes.log").write_text(
        "".join(json.dumps(each) + "\n" for each in (line | {"text": "run started"}, bad))
    )

    assert "info    runs [s1]: run started" in typed(tmp_path, "logs", "--session", "s1", "--run", "r1").out
    assert "refused" not in typed(tmp_path, "logs", "--run", "r1").out
    assert json.loads(typed(tmp_path, "logs", "--json", "--level", "error").out)["run"] == "r2"
    assert typed(tmp_path, "logs", "--session", "other").out == "Nothing yet.\n"


def line(text: str, *, part: str = "gateway.server", process: int = 1, level: str = "info", minute: int = 0) -> str:
    at = f"2026-05-01T12:{minute:02}:00.000+00:00"
    facts = {"time": at, "level": level, "part": part, "process": process, "text": text}
    return json.dumps(facts) + "\n"


def read(log: Path, wanted: LineFilter) -> list[str]:
    found: list[str] = []
    for each in lines(log, Reader(wanted)):
        if each is None:
            return found
        found.append(each["text"])
    return found


def test_the_lines_of_gateways_are_shown_oldest_first(tmp_path: Path):
    log = tmp_path / "hermes.log"
    (tmp_path / "hermes.log.2").write_text(line("first"))
    (tmp_path / "hermes.log.1").write_text(line("second") + line("a chat", part="app.floor", process=2))
    log.write_text(line("third") + line("a run", part="app.floor") + "no line\n" + '{"level": "info"}\n')

    assert read(log, LineFilter()) == ["first", "second", "third", "a run"]
    assert "a chat" in read(log, LineFilter(everybody=True))


def test_what_is_not_bad_or_new_enough_is_left_out(tmp_path: Path):
    log = tmp_path / "hermes.log"
    log.write_text(line("old", level="error") + line("fine", minute=5) + line("bad", level="error", minute=5))

    assert read(log, LineFilter(level="warning")) == ["old", "bad"]
    assert read(log, LineFilter(since=datetime(2026, 5, 1, 12, 1, tzinfo=UTC).timestamp())) == ["fine", "bad"]


def test_lines_of_one_session_and_run_are_found_by_the_beginning_of_their_ids(tmp_path: Path):
    log = tmp_path / "hermes.log"
    facts = json.loads(line("mine")) | {"session": "20260501_1", "run": "r1"}
    log.write_text(json.dumps(facts) + "\n" + json.dumps(facts | {"text": "next", "run": "r2"}) + "\n" + line("other"))

    assert read(log, LineFilter(session="20260501")) == ["mine", "next"]
    assert read(log, LineFilter(session="20260501_1", run="r2")) == ["next"]
    assert read(log, LineFilter(run="r3")) == []


def test_without_a_log_there_is_nothing_yet(tmp_path: Path):
    assert read(tmp_path / "hermes.log", LineFilter()) == []


def test_what_comes_is_shown_whole_also_when_the_log_is_turned_over(tmp_path: Path):
    log = tmp_path / "hermes.log"
    over, found = [False], list[str]()

    def written() -> None:
        with log.open("a") as file:
            file.write(line("one")[:10])
            file.flush()
            file.write(line("one")[10:])

    def turned() -> None:
        log.rename(tmp_path / "hermes.log.1")
        log.write_text(line("two"))

    def ended() -> None:
        over[0] = True

    steps: list[Callable[[], None]] = [written, turned, ended]
    for each in lines(log, Reader(LineFilter()), lambda: over[0]):
        found += [each["text"]] if each else []
        steps.pop(0)()

    assert found == ["one", "two"]


def test_a_line_is_shown_to_a_person_and_to_a_program():
    facts = json.loads(line("It broke.", level="error")) | {"session": "s1", "error": "Traceback\nValueError"}

    assert " error   gateway.server [s1]: It broke.\n    Traceback\n    ValueError" in shown(facts)
    assert json.loads(line_as_json(facts)) == facts
