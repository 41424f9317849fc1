"""Sizes: every kind of part counts, by what a model reads of it."""

import pytest

from hermes_agent.core.messages import File, Image, Message, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.section import FRAME_TOKENS, IMAGE_TOKENS, tokens_of


def size(*parts: Part) -> int:
    return tokens_of(Message(role=Role.USER, parts=parts)) - FRAME_TOKENS


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (Text(text="x" * 400), 100),
        (Text(text="é" * 200), 100),
        (Thinking(text="x" * 40, opaque="y" * 40), 20),
        (Image(data="A" * 1_000_000), IMAGE_TOKENS),
        (File(name="a.pdf", media_type="application/pdf", data="A" * 1600), IMAGE_TOKENS + 300),
        (ToolCall(id="1", name="read", arguments={"path": "a"}), FRAME_TOKENS + 5),
        (ToolCall(id="1", name="read", arguments={}, broken="x" * 400), FRAME_TOKENS + 102),
        (
            ToolResult(call_id="1", name="read", parts=(Text(text="x" * 400), Image())),
            FRAME_TOKENS + 100 + IMAGE_TOKENS,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_part_counts_by_what_a_model_reads_of_it(part: Part, tokens: int):
    assert size(part) == tokens


def test_a_message_counts_its_parts_together():
    assert size(Text(text="x" * 40), Text(text="y" * 40)) == 20
