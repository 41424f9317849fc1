"""/learn is one of the commands; what it says is tested in tests/learning/test_learned.py."""

from hermes_agent.app.commands.command import find_command
from hermes_agent.app.commands.nouns import LEARN


def test_it_is_found_by_its_name():
    found = find_command("/learn undo 3")
    assert found == (LEARN, "undo 3")
