"""What every dialect's compiler does, shown with the smallest one."""

import json
from typing import Any

from hermes_agent.core.messages import Image, Message, Role, Text, said
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.pieces import IMAGE_TOKENS, json_bytes
from hermes_agent.providers.verifier import Turn
from tests.providers.asking import PREFIX, route_to


class Smallest(ConversationCompiler):
    """Turns as their words alone; `heads` counts how often the beginning was written."""

    heads = 0

    def _head(self, prefix: Prefix) -> bytes:
        self.heads += 1
        return json_bytes({"system": prefix.system})[:-1] + b',"turns":['

    def _turn(self, turn: Turn) -> bytes:
        return json_bytes("".join(part.text for part in turn.parts if isinstance(part, Text)))

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        return {} if max_output is None else {"limit": max_output}

    def _path(self) -> str:
        return "/ask"


def asked(compiler: Smallest, messages: list[Message], prefix: Prefix = PREFIX, max_output: int | None = None) -> dict:
    request = ModelRequest(call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=prefix, messages=messages)
    compiler.take(request)
    return json.loads(compiler.write(request, max_output).body)


def test_a_request_is_its_head_its_turns_and_its_tail():
    messages = [said("one"), Message(role=Role.ASSISTANT, parts=(Text(text="two"),)), said("three")]
    body = asked(Smallest(route_to("openai/gpt-5.2")), messages, max_output=7)
    assert body == {"system": PREFIX.system, "turns": ["one", "two", "three"], "limit": 7}


def test_a_tail_without_fields_still_closes_the_object():
    assert asked(Smallest(route_to("openai/gpt-5.2")), [said("one")]) == {"system": PREFIX.system, "turns": ["one"]}


def test_the_head_is_written_again_only_for_another_prefix():
    compiler, messages = Smallest(route_to("openai/gpt-5.2")), [said("one")]
    asked(compiler, messages)
    asked(compiler, messages)
    assert compiler.heads == 1
    other = Prefix(system="Another.", tools=(), hash="1")
    assert (asked(compiler, messages, other)["system"], compiler.heads) == ("Another.", 2)


def test_size_counts_the_head_and_the_turns():
    compiler = Smallest(route_to("openai/gpt-5.2"))
    asked(compiler, [said("w" * 400)], Prefix(system="s" * 400, tools=(), hash="1"))
    assert 200 <= compiler.tokens <= 215


class Counting(Smallest):
    """Keeps which turns were written."""

    def __init__(self) -> None:
        super().__init__(route_to("openai/gpt-5.2"))
        self.written: list[Turn] = []

    def _turn(self, turn: Turn) -> bytes:
        self.written.append(turn)
        return super()._turn(turn)


def replied(text: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),))


def test_only_new_turns_are_encoded():
    compiler, messages = Counting(), [said("one"), replied("two"), said("three")]
    assert asked(compiler, messages)["turns"] == ["one", "two", "three"]
    messages += [replied("four"), said("five")]
    assert asked(compiler, messages)["turns"] == ["one", "two", "three", "four", "five"]
    assert len(compiler.written) == 5


def test_a_turn_that_grew_is_encoded_again_and_its_neighbours_are_not():
    compiler, messages = Counting(), [said("one"), replied("two"), said("three")]
    asked(compiler, messages)
    messages.append(said("and more"))
    assert asked(compiler, messages)["turns"][-1] == "threeand more"
    assert len(compiler.written) == 4


def test_the_ending_that_was_answered_stays_where_it_was():
    compiler, messages = Counting(), [said("one"), replied("half")]
    assert asked(compiler, messages)["turns"][-1] == "Continue."
    messages.append(replied(" whole"))
    assert asked(compiler, messages)["turns"][:4] == ["one", "half", "Continue.", " whole"]


def test_size_is_bytes_by_four_and_a_flat_figure_for_pictures():
    compiler, picture = Counting(), Image(data="x" * 40_000)
    asked(compiler, [Message(role=Role.USER, parts=(Text(text="w" * 400), picture))])
    assert IMAGE_TOKENS <= compiler.tokens <= IMAGE_TOKENS + 100
