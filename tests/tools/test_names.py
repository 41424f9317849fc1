"""Any id becomes part of an exec id, and different ones stay different."""

import pytest

from hermes_agent.sandbox.executions import EXEC_ID
from hermes_agent.tools.names import exec_name, lent_in, lent_name


@pytest.mark.parametrize("text", ["call_1", "../../x", "a b", "x" * 300, "ü", ".", "toolu.1"])
def test_any_text_becomes_a_name(text: str):
    assert EXEC_ID.fullmatch(f"{exec_name(text)}/{exec_name(text)}")


def test_what_looks_alike_stays_different():
    assert len({exec_name(text) for text in ("a b", "a_b", "a.b", "a/b")}) == 4
    assert exec_name("call_1") == "call_1"


def test_the_files_that_a_call_is_lent_are_those_of_its_own_key():
    own, other = f"/x/{lent_name('s1-call_1', 'KEY')}", f"/x/{lent_name('s1-call_10', 'KEY')}"
    command = f"curl -H \"$(cat '{own}')\" -u \"$(cat '{own}')\" && cat '{other}' && cat {own}"

    assert lent_in(command, "s1-call_1") == (own,)
