"""docs/permissions.md tells each reason for which a command is refused or asked about, and each path that is closed."""

from hermes_agent.app.settings import Settings
from hermes_agent.core.effects import Capability
from hermes_agent.sandbox import walls
from hermes_agent.tools.danger import code as held
from hermes_agent.tools.danger.judging import ASKS
from hermes_agent.tools.danger.losses import BLOCKS
from hermes_agent.tools.files import guard
from hermes_agent.tools.permission.permission import CHOICES
from hermes_agent.tools.schema import CAPABILITY_WORDS
from tests.docs.pages import code, out_of_step, page, table

FORK_BOMB = "it is a fork bomb"
BESIDES = {
    "it writes outside the workspace",
    "it cannot be read as a command",
    "it starts processes without end",
    "it runs in this program's own source",
    *(held.RUNS, held.DELETES, held.SENDS, held.UNREADABLE),
}


def told_reasons(text: str, column: str) -> list[str]:
    return [row[0] for row in table(text, column)]


def test_every_reason_of_the_hard_block_is_told():
    real = {FORK_BOMB, *(reason for _, reason in BLOCKS)}
    assert out_of_step(told_reasons(page("permissions.md"), "never run, because"), real) == []


def test_every_reason_to_ask_is_told():
    real = {*BESIDES, *(reason for _, reason in ASKS)}
    assert out_of_step(told_reasons(page("permissions.md"), "asked about, because"), real) == []


def test_every_path_that_is_closed_to_tools_is_told():
    closed = (
        *guard.KERNEL_TREES,
        *walls.CREDENTIAL_FOLDERS,
        *walls.CREDENTIAL_FILES,
        *walls.SYSTEM_CREDENTIALS,
        *guard.KEY_NAMES,
        *guard.HOME_READABLE,
    )
    assert set(closed) - set(code(page("permissions.md"))) == set()


def test_every_answer_is_told_in_its_order():
    assert [code(row[0])[0] for row in table(page("permissions.md"), "answer")] == list(CHOICES)


def test_every_word_for_a_capability_is_told():
    words = set(code(page("library.md")))
    assert {*Capability, *CAPABILITY_WORDS} - words == set()


def test_the_page_speaks_of_the_settings_that_there_are():
    assert {"approvals.mode", "approvals.deny"} <= set(code(page("permissions.md")))
    assert Settings().approvals.mode == "ask"


def test_a_reason_that_is_left_out_is_found():
    text = page("permissions.md").replace("| it acts as another user |", "| it does something |")
    real = {*BESIDES, *(reason for _, reason in ASKS)}
    assert len(out_of_step(told_reasons(text, "asked about, because"), real)) == 2
