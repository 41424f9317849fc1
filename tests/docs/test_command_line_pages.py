"""docs/cli.md and docs/configuration.md name every subcommand, option, exit code and setting."""

from hermes_agent.app.settings import Settings
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import OPTIONS
from hermes_agent.cli.table import COMMANDS
from hermes_agent.host.config import OVERRIDES
from hermes_agent.host.schema import walk
from tests.docs.pages import code, out_of_step, page, sections, table


def told_subcommands(text: str) -> list[str]:
    return [head.removeprefix("hermes ") for head in sections(text, 3)]


def told_settings(text: str) -> list[str]:
    return [name for row in table(text, "setting") for name in code(row[0])]


def test_every_subcommand_has_its_help_in_the_manual():
    assert out_of_step(told_subcommands(page("cli.md")), COMMANDS) == []


def test_every_option_stands_in_the_manual():
    text = page("cli.md")
    assert [flag for option in OPTIONS for flag in option.flags if flag not in text] == []


def test_every_exit_code_is_told():
    assert out_of_step((row[0] for row in table(page("cli.md"), "code")), map(str, map(int, Exit))) == []


def test_every_setting_is_told():
    assert (
        out_of_step(
            told_settings(page("configuration.md")), (key for key, entry in walk(Settings) if entry.schema is None)
        )
        == []
    )
    assert set(OVERRIDES) <= set(code(page("configuration.md")))


def test_what_is_left_out_is_found():
    assert out_of_step(told_subcommands(page("cli.md").replace("### hermes doctor", "Doctor")), COMMANDS) == [
        "doctor: is not in the manual"
    ]
    text = page("configuration.md").replace("| `agent.max_turns` |", "| agent |")
    assert out_of_step(told_settings(text), (key for key, entry in walk(Settings) if entry.schema is None)) == [
        "agent.max_turns: is not in the manual"
    ]
