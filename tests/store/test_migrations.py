"""Migrations are numbered files, the same numbers for each dialect."""

from pathlib import Path

from hermes_agent.store import migrations
from hermes_agent.store.migrations import newest, steps_after

SQL = Path(migrations.__file__).parent / "sql"


def test_both_dialects_have_the_same_steps():
    names = [sorted(path.name for path in (SQL / dialect).iterdir()) for dialect in ("sqlite", "postgres")]

    assert names[0] == names[1] != []


def test_no_number_is_left_out():
    """A step that came later under a number below the newest would never reach a database that has the newest."""
    numbers = sorted(int(path.name[:4]) for path in (SQL / "sqlite").iterdir())

    assert numbers == list(range(1, len(numbers) + 1))


def test_steps_come_in_order_and_after_what_is_there(tmp_path: Path):
    for name in ("0002_b.sql", "0001_a.sql", "0010_c.sql", "notes.txt"):
        (tmp_path / name).write_text(name, encoding="utf-8")

    assert newest(tmp_path) == 10
    assert [(step.number, step.sql) for step in steps_after(tmp_path, 1)] == [(2, "0002_b.sql"), (10, "0010_c.sql")]
