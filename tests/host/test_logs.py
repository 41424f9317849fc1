"""The log file: what a line holds, and how the file is turned over."""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.host.logs import LogFile, log_of, open_log
from hermes_agent.host.secrets import open_secrets
from tests.host.settings_for_tests import home_at
from tests.host.test_lock_file import other_holder


@pytest.fixture(autouse=True)
def no_log_left_behind() -> Iterator[None]:
    yield
    logger = logging.getLogger("hermes_agent")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_what_where_and_in_which_run(tmp_path: Path) -> None:
    open_log(tmp_path / "hermes.log", str)

    log_of("agent.loop", session="s1", run="r1").warning("stopped after %d", 3)

    (line,) = lines(tmp_path / "hermes.log")
    assert {name: line[name] for name in ("level", "part", "session", "run", "text")} == {
        "level": "warning",
        "part": "agent.loop",
        "session": "s1",
        "run": "r1",
        "text": "stopped after 3",
    }
    assert str(line["time"]).endswith("+00:00")


def test_a_process_that_stands_still_over_the_log_keeps_nobody_from_logging(tmp_path: Path) -> None:
    path = tmp_path / "hermes.log"
    handler = LogFile(path, str, largest=10)
    record = logging.LogRecord("hermes_agent.x", logging.INFO, "", 0, "a line", (), None)
    handler.emit(record)
    with other_holder(path):
        handler.emit(record)
        assert len(lines(path)) == 2
    handler.emit(record)
    handler.close()

    assert (len(lines(path)), len(lines(tmp_path / "hermes.log.1"))) == (1, 2)


def test_a_line_that_a_full_disk_tore_takes_no_other_with_it(tmp_path: Path) -> None:
    open_log(tmp_path / "hermes.log", str)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        log_of("agent").warning("torn")
        log_of("agent").warning("lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log_of("agent").warning("whole")

    torn, whole = (tmp_path / "hermes.log").read_text().splitlines()
    assert len(torn) == 20
    assert json.loads(whole)["text"] == "whole"


def test_nothing_is_opened_before_the_first_line(tmp_path: Path) -> None:
    open_log(tmp_path / "hermes.log", str)

    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_logged_with_its_traceback_and_without_secrets(tmp_path: Path) -> None:
    secrets = open_secrets(home_at(tmp_path / "home"), {"KEY": "hidden-value"})
    open_log(tmp_path / "hermes.log", secrets.redact)

    try:
        raise ValueError("bad hidden-value")
    except ValueError:
        log_of("x").exception("failed with hidden-value")

    (line,) = lines(tmp_path / "hermes.log")
    assert "hidden-value" not in json.dumps(line)
    assert "ValueError: bad [secret KEY]" in str(line["error"])
    assert (tmp_path / "hermes.log").stat().st_mode & 0o777 == 0o600


def test_the_file_is_turned_over_and_only_so_many_are_kept(tmp_path: Path) -> None:
    handler = LogFile(tmp_path / "log", str, largest=1000, kept=2)
    logger = logging.getLogger("hermes_agent")
    logger.addHandler(handler)

    for number in range(100):
        logger.warning("line %d", number)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert lines(tmp_path / "log")[-1]["text"] == "line 99"


WRITER = """
import logging, sys
from pathlib import Path
from hermes_agent.host.logs import LogFile
logger = logging.Logger("x")
logger.addHandler(LogFile(Path(sys.argv[1]), str, largest=1_500, kept=200))
for number in range(500):
    logger.warning("%s %d", sys.argv[2], number)
"""


def test_several_processes_share_a_file_and_lose_no_line(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(tmp_path / "log")]
    running = [subprocess.Popen([*command, name], env={"PYTHONPATH": f"{root}/src"}) for name in "abc"]

    codes = [process.wait() for process in running]

    texts = [line["text"] for path in tmp_path.iterdir() for line in lines(path)]
    assert codes == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) > 3
    assert sorted(map(str, texts)) == sorted(f"{name} {number}" for name in "abc" for number in range(500))


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    open_log(tmp_path / "gone" / "hermes.log", str)

    log_of("x").error("nobody reads this")


def test_opening_again_replaces_the_file_before(tmp_path: Path) -> None:
    open_log(tmp_path / "one", str)
    open_log(tmp_path / "two", str)

    log_of("x").warning("here")

    assert [path.name for path in tmp_path.iterdir()] == ["two"]


def test_after_the_end_lines_are_for_whoever_logs_in_this_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_log(tmp_path / "one.log", str)
    log = open_log(tmp_path / "two.log", str)
    log_of("x").warning("into the file")
    log.close()
    log_of("x").warning("to the others")

    assert [line["text"] for line in lines(tmp_path / "two.log")] == ["into the file"]
    assert [record.message for record in caplog.records] == ["to the others"]
