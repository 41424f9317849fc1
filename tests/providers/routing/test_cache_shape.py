"""The hashes of a conversation follow it, and change from the first message that did."""

from dataclasses import replace

from hermes_agent.core.messages import said
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.core.shape import first_change
from hermes_agent.providers.routing.cache_shape import CacheShape

REQUEST = ModelRequest(
    call_id="c",
    session="s",
    run="r",
    turn=1,
    purpose="chat",
    prefix=Prefix(system="", tools=(), hash=""),
    messages=(),
)


def test_a_conversation_that_grows_keeps_its_hashes_whoever_computes_them():
    messages = [said(f"{number}") for number in range(5)]
    trail = CacheShape()
    before = trail.shape(replace(REQUEST, messages=messages[:3]))
    after = trail.shape(replace(REQUEST, messages=messages))
    assert first_change(before, after) == ""
    assert CacheShape().shape(replace(REQUEST, messages=messages)) == after


def test_a_message_that_changed_is_found_and_what_comes_back_too():
    messages = [said(f"{number}") for number in range(5)]
    trail = CacheShape()
    before = trail.shape(replace(REQUEST, messages=messages))
    other = [*messages[:2], said("other"), *messages[3:]]
    assert first_change(before, trail.shape(replace(REQUEST, messages=other))) == "message 3"
    assert trail.shape(replace(REQUEST, messages=messages)) == before
