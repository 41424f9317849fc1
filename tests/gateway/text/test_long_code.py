"""Code of 30,000 characters with everything that breaks chats arrives whole, over each platform's own protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_agent.core.chat import Content, Conversation
from hermes_agent.gateway.channel_runtime import made
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.text.markdown import HARMLESS
from hermes_agent.testing.clock import FakeClock
from tests.contracts.channels import MAKERS, Stage

FAMILY, WALES = "👩‍👩‍👧‍👦", "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
WHOLE = (FAMILY, WALES, "👍🏽", "🇩🇪")
ROWS = (
    "def größe(): return '日本語のテキスト'",
    f"    family = '{FAMILY}' * 3  # {WALES} 👍🏽🇩🇪",
    "```",
    "    ```python",
    "~~~",
    "see [the manual](https://example.org/manual) or https://example.org/a?b=1&c=2",
    "if a < b && c > d: `e` * f _g_ ~~h~~ **i** $j^2$ | k | \\n @everyone <@U1> <!here>",
    "1. not a list. # not a heading - (nor) [this]! {x} = y + z",
)
FENCES = ("`````", "~~~~python", "````markdown", "  `````rust")


@pytest.fixture(params=sorted(CHANNELS))
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with MAKERS[request.param](tmp_path) as made_:
        yield made_
        await made_.channel.close()


def reply(rows: list[str], fence: str) -> tuple[str, list[str]]:
    """A reply with so much code, and its lines, each of which is there once."""
    code = []
    while sum(map(len, code)) < 30_000:
        code += [f"{len(code) + number:05} {row}" if row.strip("`~") else row for number, row in enumerate(rows)]
    marks = fence.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    code = [line for line in code if not line.startswith(marks)]
    return f"Here is **all** of it:\n\n{fence}\n" + "\n".join(code) + f"\n{marks}\n\nThat was it.", code


def bare(text: str) -> str:
    """What is read of a text, without what only a platform's markup adds to it."""
    for written, meant in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), (HARMLESS, "```")):
        text = text.replace(written, meant)
    return text


@pytest.mark.parametrize("turn", range(4))
async def test_all_of_a_long_code_reply_is_there(stage: Stage, turn: int):
    text, code = reply([*ROWS[turn:], *ROWS[:turn]], FENCES[turn])
    to = Conversation(platform=stage.kind.name, chat=stage.chat)

    parts = made(stage.kind, stage.channel, FakeClock()).parts(Content(text=text), slot=1, to=to)
    for number, part in enumerate(parts):
        await stage.channel.send(to, part, f"s:r:{number}")

    shown = [bare(each.text) for each in stage.double.chats.of(stage.chat)]
    at = 0
    together = "\n".join(shown)
    for line in code:
        found = together.find(line, at)
        assert found >= 0, line
        at = found + len(line)
    assert "Here is" in shown[0]
    assert shown[-1].rstrip().endswith("That was it.")
    assert all(together.count(each) == text.count(each) for each in WHOLE)
