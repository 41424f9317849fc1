"""The page on security has each promise as the program prints it."""

from __future__ import annotations

from hermes_agent.app.operations.security import PROMISES
from tests.docs.pages import DOCS


def test_the_table_is_that_of_the_program():
    rows = [line for line in (DOCS / "security.md").read_text().splitlines() if line.startswith("| ")][1:]

    assert rows == [f"| {each.says} | {each.by} | {each.without} |" for each in PROMISES]
