"""docs/permissions.md tells each reason for which a command is refused or asked about, and each path that is closed."""

from hermes_agent.app.settings import Settings
from hermes_agent.core.effects import Capability
from hermes_agent.sandbox import walls
from hermes_agent.tools.danger.judging import BARE, BLOCKS, DESTROYS, FORK_BOMB, HELD, LEAVES, PARTS
from hermes_agent.tools.files import guard
from hermes_agent.tools.permission.permission import OUTSIDE, RULED
from hermes_agent.tools.schema import CAPABILITY_WORDS
from tests.docs.pages import code, out_of_step, page, table

BESIDES = {
    *(*LEAVES, *HELD, OUTSIDE),
    "no checkpoint holds what it deletes or overwrites",
    "it runs in this program's own source",
}
UNWALLED = {
    *(*BARE, PARTS),
    "it writes outside the workspace",
    "it cannot be read as a command",
    "no wall can be had here to hold what it does",
}


def told_reasons(text: str, column: str) -> list[str]:
    return [row[0] for row in table(text, column)]


def test_every_reason_of_the_hard_block_is_told():
    real = {FORK_BOMB, DESTROYS, *BLOCKS}
    assert out_of_step(told_reasons(page("permissions.md"), "never run, because"), real) == []


def test_every_reason_to_ask_is_told():
    text = page("permissions.md")
    assert out_of_step(told_reasons(text, "asked about, because"), BESIDES) == []
    assert out_of_step(told_reasons(text, "also asked about without a wall, because"), UNWALLED) == []


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
    assert [code(row[0])[0] for row in table(page("permissions.md"), "answer")] == list(RULED)


def test_every_word_for_a_capability_is_told():
    words = set(code(page("library.md")))
    assert {*Capability, *CAPABILITY_WORDS} - words == set()


def test_the_page_speaks_of_the_settings_that_there_are():
    assert {"approvals.mode", "approvals.deny"} <= set(code(page("permissions.md")))
    assert Settings().approvals.mode == "ask"


def test_a_reason_that_is_left_out_is_found():
    text = page("permissions.md").replace("| it acts as another user |", "| it does something |")
    assert len(out_of_step(told_reasons(text, "asked about, because"), BESIDES)) == 2
