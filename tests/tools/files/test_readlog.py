"""What a session has read is known in the next process too."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.tools.files.guard import SESSIONS_IN_MEMORY, ReadLog

FILE = Path("/w/a.txt")


def test_a_session_knows_what_it_read_last(tmp_path: Path) -> None:
    log = ReadLog(tmp_path)

    log.saw("s1", FILE, "old")
    log.saw("s1", FILE, "new")

    assert log.known("s1", FILE) == "new"


def test_sessions_know_nothing_of_each_other(tmp_path: Path) -> None:
    log = ReadLog(tmp_path)
    log.saw("s1", FILE, "hash")

    assert log.known("s2", FILE) == ""


def test_another_process_knows_it_too(tmp_path: Path) -> None:
    ReadLog(tmp_path).saw("s1", FILE, "hash")

    assert ReadLog(tmp_path).known("s1", FILE) == "hash"


def test_an_intent_is_found_by_its_key_and_path(tmp_path: Path) -> None:
    ReadLog(tmp_path).intend("s1", FILE, key="call_1", digest="new", answer="Wrote it.")
    log = ReadLog(tmp_path)

    found = log.intended("s1", FILE, key="call_1")

    assert found is not None
    assert (found.hash, found.answer) == ("new", "Wrote it.")
    assert log.intended("s1", FILE, key="call_2") is None
    assert log.intended("s1", Path("/w/b.txt"), key="call_1") is None
    assert log.known("s1", FILE) == ""


def test_a_line_that_a_crash_cut_off_costs_that_line_alone(tmp_path: Path) -> None:
    ReadLog(tmp_path).saw("s1", FILE, "hash")
    with (tmp_path / "s1.jsonl").open("ab") as file:
        file.write(b'{"path": "/w/b.t')

    log = ReadLog(tmp_path)
    log.saw("s1", Path("/w/c.txt"), "other")

    assert ReadLog(tmp_path).known("s1", FILE) == "hash"
    assert ReadLog(tmp_path).known("s1", Path("/w/c.txt")) == "other"


def test_what_is_pushed_out_of_memory_is_read_again(tmp_path: Path) -> None:
    log = ReadLog(tmp_path)
    for number in range(SESSIONS_IN_MEMORY * 2):
        log.saw(f"s{number}", FILE, f"hash {number}")

    assert log.known("s0", FILE) == "hash 0"


def test_any_session_name_and_any_path_will_do(tmp_path: Path) -> None:
    log = ReadLog(tmp_path / "log")
    odd = Path("/w/\udce4.txt")

    log.saw("../../etc/passwd", odd, "hash")

    assert log.known("../../etc/passwd", odd) == "hash"
    assert [path.parent for path in tmp_path.rglob("*.jsonl")] == [tmp_path / "log"]
