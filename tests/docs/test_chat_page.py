"""docs/chat.md names every slash command and every key, as the program itself does."""

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import Command
from hermes_agent.cli.chat.chat import KEYS, QUIT
from hermes_agent.cli.chat.chat_session import HERE
from hermes_agent.cli.chat.questions import MEANINGS
from hermes_agent.host.late import late
from tests.docs.pages import code, out_of_step, page, table


def real_rows() -> list[str]:
    """Each command as a row of the page: use, summary, whether it works while a run is under way."""
    commands: list[Command] = [late(where) for where in COMMANDS.values()]
    rows = [
        f"`{f'/{each.name} {each.arguments}'.rstrip()}` | {each.summary} | {'yes' if each.while_running else 'no'}"
        for each in commands
    ]
    return [*rows, *(f"`/{each.name}` | {each.summary} | yes" for each in HERE)]


def told_rows(text: str) -> list[str]:
    return [" | ".join(row) for row in table(text, "command")]


def test_every_slash_command_is_told_as_it_is():
    assert out_of_step(told_rows(page("chat.md")), real_rows()) == []


def test_every_key_is_told_as_the_chat_itself_tells_it():
    assert KEYS in page("chat.md")


def test_every_word_that_leaves_the_chat_is_told():
    assert set(QUIT) <= set(code(page("chat.md")))


def test_every_answer_to_a_permission_question_is_told():
    assert out_of_step((code(row[0])[0] for row in table(page("permissions.md"), "answer")), MEANINGS) == []


def test_a_command_that_changed_is_found():
    text = page("chat.md").replace("End the run at once;", "End the run some time;")
    assert len(out_of_step(told_rows(text), real_rows())) == 2
