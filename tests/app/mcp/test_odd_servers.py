"""Servers with awkward lists and answers: what is bad in them is left out alone, and no answer spoils a session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes_agent.core.messages import File, Image, Text
from hermes_agent.tools.output import Spill
from tests.app.mcp.calling import ODD, Calling, calling, plain


async def lists(call: Calling) -> int:
    return int((call.workspace / "lists").read_text())


async def test_one_bad_prompt_or_resource_leaves_the_others_and_the_tools(tmp_path: Path):
    async with calling(tmp_path, {"odd": plain(ODD)}) as call:
        assert "mcp__odd__zip" in call.tools()
        assert '"name": "fine"' in await call("mcp_prompt", server="odd")


async def test_a_server_without_templates_has_its_resources_listed(tmp_path: Path):
    async with calling(tmp_path, {"odd": plain(ODD)}) as call:
        listed = await call("mcp_resource", action="list", server="odd")

    assert listed == '{"uri": "x://one", "name": "one", "type": ""}'


async def test_a_server_that_always_says_that_it_changed_is_asked_ever_less(tmp_path: Path):
    async with calling(tmp_path, {"odd": plain(ODD, env={"MODE": "spam"})}) as call:
        await asyncio.wait_for(call("mcp__odd__note"), 5)
        await asyncio.sleep(1.0)
        asked = await lists(call)

    assert 2 <= asked <= 5


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("broken_picture", "[image, image/png: its data is damaged]"),
        ("note", "hello"),
    ],
)
async def test_what_cannot_be_shown_is_said(tmp_path: Path, tool: str, said: str):
    async with calling(tmp_path, {"odd": plain(ODD)}) as call:
        assert await call(f"mcp__odd__{tool}") == said


async def test_a_picture_is_one_by_its_bytes(tmp_path: Path):
    async with calling(tmp_path, {"odd": plain(ODD)}) as call:
        (misnamed,) = (await call.answer("mcp__odd__misnamed")).parts
        (none,) = (await call.answer("mcp__odd__no_picture")).parts
        many = (await call.answer("mcp__odd__pictures")).parts

    assert isinstance(misnamed, Image)
    assert misnamed.media_type == "image/png"
    assert isinstance(none, File)
    assert [type(part) for part in many] == [Image] * 20 + [Text]
    assert many[-1].text == "[30 more files left out]"


async def test_many_small_texts_are_cut_and_saved_as_one(tmp_path: Path):
    async with calling(tmp_path, {"odd": plain(ODD)}) as call:
        answer = await call.answer("mcp__odd__blocks")
    (fitted,) = (await Spill(tmp_path / "spilled").fit("mcp__odd__blocks", answer, "key")).parts

    assert len(fitted.text) < 100_000
    assert "the whole is in" in fitted.text


@pytest.mark.parametrize(("tool", "suffix"), [("zip", ".zip"), ("sound", ".mp3")])
async def test_a_file_is_saved_and_named(tmp_path: Path, tool: str, suffix: str):
    async with calling(tmp_path, {"odd": plain(ODD)}) as call:
        answer = await call.answer(f"mcp__odd__{tool}")
    (fitted,) = (await Spill(tmp_path / "spilled").fit(tool, answer, "key")).parts
    (saved,) = (tmp_path / "spilled").iterdir()

    assert fitted.origin is answer.parts[0].origin
    assert str(saved) in fitted.text
    assert saved.suffix == suffix
    assert saved.read_bytes()[:2] in (b"PK", b"RI")
