"""One conversation of twelve turns over every dialect: the same transcript, and each other one can go on with it."""

import itertools
from dataclasses import replace

import pytest

from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    Origin,
    Part,
    Role,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say, Think
from tests.providers.asking import DIALECTS, PIXEL, Spoken, Talk, result, talking

EVERY = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)
PAIRS = pytest.mark.parametrize(
    ("first", "second"), [*itertools.permutations(DIALECTS, 2)], ids=lambda spoken: spoken.name
)
UNICODE = "Grüße, 世界! 👩‍👩‍👧‍👦 \u202e\u05e9\u05dc\u05d5\u05dd\u202c नमस्ते \ud7ff ﷽ e\u0301"
PICTURE = Image(data=PIXEL, media_type="image/png")
NOTE = File(name="notes.md", media_type="text/markdown", data="aGVsbG8=", origin=Origin.OWNER)
OPENING = Message(role=Role.USER, parts=(Text(text="See:", origin=Origin.OWNER), PICTURE, NOTE))

# What the model answers in its nth turn.
SCRIPT: tuple[Answer, ...] = tuple(
    Answer(pieces=pieces)
    for pieces in (
        (
            Think("A picture. Let me look."),
            Say("I read both."),
            Call("read_file", {"path": "a"}),
            Call("read_file", {"path": "ü"}),
        ),
        (Think("One failed."), Call("read_file", {"path": "a.txt", "deep": {"list": [1, None, 0.5, True]}})),
        (Say(UNICODE),),
        (Call("write_file", {"path": "b", "content": UNICODE}),),
        (Think("Done?"), Say("Written.")),
        (Call("read_file", {"path": "b"}), Call("write_file", {"path": "c"}), Call("read_file", {"path": "d"})),
        (Think("Three results."), Think("And a second thought."), Say("All three are there.")),
        (Say("Yes."),),
        (Think("Again."), Call("read_file", {"path": "e.png"})),
        (Say("A pixel."),),
        (Call("read_file", {}),),
        (Think("The end."), Say("Goodbye.")),
    )
)
ANSWERS = {
    "a": ("text of a", False, False),
    "ü": ("no such file: ü", True, False),
    "e.png": ("the picture", False, True),
}


async def held(talk: Talk) -> list[Message]:
    """The conversation up to its twelfth turn."""
    talk.messages[:] = [OPENING]
    for turn in range(len(SCRIPT)):
        reply = await talk.ask()
        assert reply.stop is (StopReason.TOOL_CALLS if reply.message.tool_calls else StopReason.END)
        for call in reply.message.tool_calls:
            text, is_error, image = ANSWERS.get(call.arguments.get("path", ""), (f"result of {turn}", False, False))
            talk.answer(result(call.id, text, name=call.name, is_error=is_error, image=image))
        if not reply.message.tool_calls:
            talk.say(f"And {turn}?")
    return list(talk.messages)


def neutral(messages: list[Message]) -> list[tuple[Role, list[Part]]]:
    """The transcript without what is the provider's own: signatures, makers, and the ids of calls."""
    numbers: dict[str, str] = {}
    told: list[tuple[Role, list[Part]]] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            match part:
                case Thinking(text=""):
                    continue  # it holds a signature, and nothing that was thought
                case Thinking():
                    parts.append(Thinking(text=part.text))
                case ToolCall():
                    numbers[part.id] = str(len(numbers))
                    parts.append(replace(part, id=numbers[part.id]))
                case ToolResult():
                    parts.append(replace(part, call_id=numbers[part.call_id]))
                case _:
                    parts.append(part)
        told.append((message.role, together(parts)))
    return told


def together(parts: list[Part]) -> list[Part]:
    """Thoughts that follow each other as one: not every protocol tells where one ends."""
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Thinking) and isinstance(last, Thinking):
            merged[-1] = Thinking(text=last.text + part.text)
        else:
            merged.append(part)
    return merged


def script(heard: Heard) -> Answer:
    return SCRIPT[heard.turn] if heard.turn < len(SCRIPT) else Answer(pieces=(Think("Hm."), Say(f"Turn {heard.turn}.")))


@EVERY
async def test_the_transcript_is_the_script_s_whatever_the_dialect(spoken: Spoken):
    async with talking(spoken, script) as talk:
        transcript = neutral(await held(talk))
    spoken_parts = [parts for role, parts in transcript if role is Role.ASSISTANT]
    numbers = itertools.count()
    assert spoken_parts == [
        together(
            [
                Thinking(text=piece.text)
                if isinstance(piece, Think)
                else Text(text=piece.text)
                if isinstance(piece, Say)
                else ToolCall(id=str(next(numbers)), name=piece.name, arguments=piece.arguments)
                for piece in answer.pieces
            ]
        )
        for answer in SCRIPT
    ]


@EVERY
async def test_what_a_dialect_is_sent_of_its_own_conversation_is_all_of_it(spoken: Spoken):
    async with talking(spoken, script) as talk:
        messages = await held(talk)
        await talk.ask()
        heard = talk.server.asked[-1]
        body = talk.server.exchanges[-1].request.body.decode()
    told = words_of(heard.messages)
    assert heard.turn == len(SCRIPT)
    assert all(text in told for text in words_of(messages).split("\n"))
    assert body.count(PIXEL) == 2


@PAIRS
async def test_another_dialect_goes_on_and_nothing_is_lost_that_it_can_say(first: Spoken, second: Spoken):
    async with talking(first, script) as talk:
        messages = await held(talk)
    before = repr(messages)

    async with talking(second, script) as talk:
        talk.messages[:] = messages
        reply = await talk.ask()
        heard = talk.server.asked[-1]
        body = talk.server.exchanges[-1].request.body.decode()
        continued = list(talk.messages)
    assert reply.message.text == f"Turn {len(SCRIPT)}."
    assert heard.turn == len(SCRIPT)
    assert all(text in words_of(heard.messages) for text in words_of(messages).split("\n"))
    assert calls_of(heard.messages) == calls_of(messages)
    assert not any(part.kind == "thinking" for message in heard.messages for part in message.parts)
    assert body.count(PIXEL) == 2

    async with talking(first, script) as talk:
        talk.messages[:] = [*continued, Message(role=Role.USER, parts=(Text(text="Back?", origin=Origin.OWNER),))]
        await talk.ask()
        again = talk.server.asked[-1]
        bodies = len(talk.server.exchanges)
    assert again.turn == len(SCRIPT) + 1
    assert bodies == 1, "its own thinking was not taken back"
    assert repr(messages) == before


def words_of(messages: list[Message] | tuple[Message, ...]) -> str:
    """Everything said and answered, one text on a line."""
    texts: list[str] = []
    for message in messages:
        for part in message.parts:
            match part:
                case Text():
                    texts.append(part.text)
                case ToolResult():
                    texts.append(part.text)
                case _:
                    continue
    return "\n".join(texts)


def calls_of(messages: list[Message] | tuple[Message, ...]) -> list[tuple[str, object, str]]:
    """Each call with the words of its result."""
    answers = {
        part.call_id: part.text for message in messages for part in message.parts if isinstance(part, ToolResult)
    }
    calls = [call for message in messages for call in message.tool_calls]
    return [(call.name, call.arguments, answers[call.id].removeprefix("Error: ")) for call in calls]
