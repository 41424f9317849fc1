"""A chain of two providers that fail at random in every way there is: how each request ends, and in what time."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from bench.figures import Figure
from hermes_agent.core.errors import ProviderError
from hermes_agent.core.messages import Delta, Message, Reply, Retrying, Role, Text, TextDelta, said
from hermes_agent.providers.demo.script import Answer, Heard, Pace, Say
from hermes_agent.providers.routing.policy import MOST_SHRINKS
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.testing.faults import (
    Empty,
    ErrorEvent,
    Hang,
    Html,
    KeepAlives,
    Malformed,
    Reset,
    Status,
    Truncate,
)
from hermes_agent.testing.scripted import Step
from tests.providers.asking import Chained, chained

REQUESTS = 1_000

STATUSES = (400, 401, 402, 403, 404, 408, 413, 418, 429, 500, 502, 503, 504, 529)
MIDWAY = (Reset, Truncate, lambda **more: Truncate(clean=True, **more), Malformed, ErrorEvent, Hang, KeepAlives)
HEALTHY = 0.45
SECONDS = 1.5
GRACE = 1.0
SETTINGS = ModelSettings(max_retries=2, stall_seconds=0.08, cool_down=5.0)
AT_ONCE = 10


def reply_to(question: str) -> str:
    """The one right reply: long enough to be broken off and gone on with."""
    return f"The answer to {question!r} is written in so many words that a connection may well break among them."


def script(chance: random.Random) -> Callable[[Heard], Step]:
    """Answers rightly, or fails in a way that is drawn."""

    def answer(heard: Heard) -> Step:
        question = next(message.text for message in heard.messages if message.role is Role.USER)
        whole = reply_to(question)
        begun = next((message.text for message in heard.messages if message.role is Role.ASSISTANT), "")
        assert whole.startswith(begun)
        rest = Answer(pieces=(Say(whole[len(begun) :] or " "),), pace=Pace(characters=7))
        return rest if chance.random() < HEALTHY else fault(chance, rest)

    return answer


def fault(chance: random.Random, rest: Answer) -> Step:
    kind = chance.randrange(6)
    if kind == 0:
        return Html(code=chance.choice((200, 404, 502)))
    if kind == 1:
        return Empty()
    if kind == 2:
        return Hang(headers=False)
    if kind == 3:
        code = chance.choice(STATUSES)
        return Status(code, headers={"retry-after": "0.05"} if code == 429 and chance.random() < 0.5 else {})
    if kind == 4:
        return Status(400, chance.choice(("prompt is too long", "content policy", "temperature must be a number")))
    return chance.choice(MIDWAY)(reply=rest, after=chance.randrange(1, 9))


async def ask(talk: Chained, number: int) -> tuple[str, float, list[Delta | Reply]]:
    """The name of the failure (empty: none), the seconds that it took, and what came."""
    question, began, heard = f"question {number}", time.monotonic(), []
    request = replace(
        talk.request(),
        call_id=f"c{number}",
        session=f"s{number}",
        messages=[said(question)],
        deadline=talk.clock.monotonic() + SECONDS,
    )
    failure = ""
    try:
        async with aclosing(talk.broker.ask(request)) as items:
            async for item in items:
                heard.append(item)  # noqa: PERF401 - what came before a failure counts
    except ProviderError as error:
        failure = type(error).__name__
        assert str(error), "a failure says what to do"
        assert error.provider
    return failure, time.monotonic() - began, heard


def shown(heard: list[Delta | Reply]) -> str:
    """The words that a person sees in the end."""
    words = ""
    for item in heard:
        match item:
            case TextDelta(text=text):
                words += text
            case Retrying():
                words = ""
            case _:
                pass
    return words


async def ends_of(requests: int, seed: int) -> Counter[str]:
    """How so many requests end: the failure's name, or nothing for the right reply. Raises `AssertionError` for one
    that came too late, came twice, or said something else, and for too many attempts."""
    chance = random.Random(seed)
    ends: Counter[str] = Counter()
    async with chained(script(chance), script(chance), settings=SETTINGS) as talk:
        for first in range(0, requests, AT_ONCE):
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(ask(talk, number)) for number in range(first, first + AT_ONCE)]
            ends.update(_checked(number, task.result()) for number, task in enumerate(asked, first))
        _check_attempts(talk)
    return ends


def _checked(number: int, end: tuple[str, float, list[Delta | Reply]]) -> str:
    """The failure's name, after everything else was looked at."""
    failure, seconds, heard = end
    assert seconds < SECONDS + GRACE
    replies = [item for item in heard if isinstance(item, Reply)]
    assert len(replies) == (0 if failure else 1)
    if replies:
        assert replies[0].message == _message(reply_to(f"question {number}"))
        assert shown(heard) == replies[0].message.text
    return failure


def _check_attempts(talk: Chained) -> None:
    """Retries are bounded, and none was made after its deadline: every attempt was settled in time."""
    attempts: dict[str, int] = {}
    for row in talk.book.opened:
        call = row.call_id.partition(".")[0]
        attempts[call] = attempts.get(call, 0) + 1
    most = len(talk.servers) * (SETTINGS.max_retries + 1 + 1) + MOST_SHRINKS + 1
    assert max(attempts.values()) <= most
    assert len(talk.book.settled) == len(talk.book.opened)


def _message(text: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),))


def measure() -> list[Figure]:
    """The figures of this module."""
    ends = asyncio.run(ends_of(REQUESTS, seed=1))
    print(dict(ends), file=sys.stderr)
    return [
        Figure(name=f"{REQUESTS} requests to failing providers, answered", value=ends[""], unit=""),
        Figure(name="... ended by one typed failure, in time", value=ends.total() - ends[""], unit=""),
        Figure(name="... ended otherwise", value=REQUESTS - ends.total(), unit="", limit=0),
    ]
