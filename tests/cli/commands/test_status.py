"""`hermes status`."""

import json
from pathlib import Path

from tests.cli.shell import typed


def test_an_idle_home_says_who_would_run_work(tmp_path: Path):
    shown = typed(tmp_path, "status")

    assert shown.out.splitlines() == [
        "Serving: nobody (`hermes gateway start` or `hermes worker` does).",
        "Nothing runs or waits.",
    ]
    assert json.loads(typed(tmp_path, "status", "--json").out) == {"serving": [], "work": [], "warning": ""}
