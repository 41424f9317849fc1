"""What chat completions, responses and runs share: which message is to be said, and where."""

import asyncio
from types import MappingProxyType

import pytest

from hermes_agent.api.completion import LONGEST_HEADER, NAME, ONCE, SESSION, system_of, wish_of
from hermes_agent.api.endpoint import Call, Nothing
from hermes_agent.api.requests import Said
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.host.inbound.message import Refused

WHO = Principal(platform="api", user="anna", standing=Standing.MEMBER)
HI = Said(role="user", content="Hi")


def call(**headers: str) -> Call[Nothing, Nothing]:
    return Call(who=WHO, path={}, query=Nothing(), body=Nothing(), headers=headers, left=asyncio.Event())


def test_the_last_message_is_said_and_those_before_it_are_history():
    said = [Said(role="system", content="Be brief."), HI, Said(role="assistant", content="Yes?"), HI]
    wish = wish_of(call(), said, "messages", instructions=system_of(said))
    assert (wish.words, len(wish.history), wish.instructions) == ("Hi", 2, "Be brief.")


def test_headers_name_the_session_and_the_body_goes_before_them():
    headers = MappingProxyType({SESSION: "s", NAME: "n", ONCE: "o"})
    wish = wish_of(call(**headers), [HI], "input", session="other")
    assert (wish.session, wish.name, wish.once) == ("other", "n", "o")


@pytest.mark.parametrize(
    "said",
    [
        [],
        [Said(role="system", content="x")],
        [Said(role="user", content=" ")],
        [HI, Said(role="assistant", content="x")],
        [Said(role="tool", content="x"), HI],
    ],
)
def test_what_ends_with_no_word_of_the_user_is_refused(said):
    with pytest.raises(Refused) as refused:
        wish_of(call(), said, "messages")
    assert (refused.value.status, refused.value.param) == (400, "messages")


def test_a_header_that_is_too_long_is_refused():
    with pytest.raises(Refused, match="too long"):
        wish_of(call(**{ONCE: "x" * (LONGEST_HEADER + 1)}), [HI], "input")
