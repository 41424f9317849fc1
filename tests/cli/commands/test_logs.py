"""`hermes logs`: every line of the home's log, by session, run and level."""

import json
from pathlib import Path

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
