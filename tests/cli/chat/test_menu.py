from hermes_agent.app.commands import COMMANDS
from hermes_agent.cli.chat.menu import HERE, more_help, names


def test_every_command_is_offered_once_with_a_summary():
    offered = [each.name for each in names()]

    assert offered == [*COMMANDS, "quit", "keys", "thinking"]
    assert all(each.summary for each in names())


def test_help_tells_what_only_a_terminal_has():
    assert [line.split()[0] for line in more_help().split("\n")] == [f"/{each.name}" for each in HERE]
