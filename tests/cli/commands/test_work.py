"""`hermes cron` on the command line."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from tests.cli.shell import typed


def test_a_job_is_made_and_listed_with_its_next_times(tmp_path: Path):
    home = tmp_path / "home"
    made = typed(home, "cron", "create", "every day at 09:00", "Sum up my mail", "--zone", "Europe/Berlin", "--json")
    job = json.loads(made.out)
    assert job["schedule"] == "At 09:00 every day (Europe/Berlin)"
    assert len(job["next"]) == 3
    listed = typed(home, "cron", "list").out
    assert "Sum up my mail" in listed
    assert "Nobody is running it" in listed
    assert json.loads(typed(home, "cron", "next", job["id"], "--json").out)["id"] == job["id"]
    assert typed(home, "cron", "next", job["id"]).out.count("09:00") == 3
    changed = typed(home, "cron", "edit", job["id"], "--schedule", "every 2h", "--name", "mail")
    assert changed.out.startswith("mail (")
    assert json.loads(typed(home, "cron", "status", "--json").out)["on"] == 1
    assert "is removed" in typed(home, "cron", "remove", "mail").out
    with pytest.raises(HermesError, match="no schedule"):
        typed(home, "cron", "add", "whenever", "Hi")


def test_a_tick_runs_what_is_due_and_ends(tmp_path: Path):
    home = tmp_path / "home"
    (home / "scripts").mkdir(parents=True)
    (home / "scripts" / "hello.sh").write_text("echo hello")
    made = typed(home, "cron", "create", "@daily", "--script", "hello.sh", "--no-agent", "--name", "hello", "--json")
    typed(home, "cron", "run", "hello")
    assert typed(home, "cron", "tick").out == "Nothing is due any more.\n"
    runs = json.loads(typed(home, "cron", "runs", "hello", "--json").out)
    assert [each["words"] for each in runs if each["state"] == "ran"] == ["hello"]
    files = list((home / "cron" / "output" / json.loads(made.out)["id"]).iterdir())
    assert len(files) == 1
