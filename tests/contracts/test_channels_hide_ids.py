"""Where ids are hashed the model is told none of a person, over every channel and every way in which one comes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.providers.demo.script import Say
from tests.contracts.channels import CASES, Stage
from tests.gateway.harness import eventually, opened

HIDDEN = "\nprivacy:\n  hash_ids: true\n"
FORMS = ("{}", "<{}>", "**{}**", "_{}_", "({}):", "[she](mailto:{})", "for:{}/x", "I am {}.", "'{}',")


def filled(plain: Any, id_: str) -> Any:  # noqa: ANN401  whatever JSON holds
    """A message's fields with the id of somebody in them."""
    match plain:
        case "{}" if id_.isdecimal():
            return int(id_)
        case str():
            return plain.replace("{}", id_)
        case dict():
            return {name: filled(each, id_) for name, each in plain.items()}
        case list() | tuple():
            return [filled(each, id_) for each in plain]
    return plain


def quoted(name: str) -> str:
    """A name as every platform takes it, mail too."""
    return f'"{name}"' if "@" in name else name


@pytest.fixture(params=sorted(CASES))
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with CASES[request.param].stage(tmp_path) as made:
        yield replace(made, kind=replace(made.kind, make=lambda _: made.channel))


async def heard(stage: Stage, tmp_path: Path, more: str) -> str:
    """All that the model was told when people had spoken in every way, in lower case."""
    town, double = CASES[stage.kind.name].town, stage.double
    people = f"owners: ['{town.ann}']\nmembers: ['{town.bob}']\ngroups: ['*']\nshared: true\nmention: false"
    async with opened(tmp_path, stage.kind, lambda _: Say("Yes."), people, more) as model:
        both = (town.ann, town.ann.upper(), quote(town.bob, safe=""))
        forms = " ".join(form.format(each) for form in FORMS for each in both)
        await double.say(f"forms: {forms}", chat=town.group, user=town.bob, name=quoted(town.bob), group=True)
        for number, (text, fields) in enumerate(town.ways):
            given, words = filled(fields, town.eve), f"way{number} {filled(text, town.eve)}"
            await double.say(words, chat=town.group, user=town.ann, name="Ann", group=True, **given)
        masked = quoted(f"{town.ann[:2]}\u200b{town.ann[2:]}")
        await double.say("alone", chat=stage.chat, user=town.ann, name=masked)

        marks = ("forms", "alone", *(f"way{number}" for number in range(len(town.ways))))
        told = ""

        def is_told() -> bool:
            nonlocal told
            told = "\n".join(json.dumps(each.body, ensure_ascii=False) for each in model.exchanges)
            return all(mark in told for mark in marks)

        await eventually(is_told, 6)
    return unquote(told).lower()


async def test_no_id_of_a_person_or_chat_reaches_the_model_where_ids_are_hashed(stage: Stage, tmp_path: Path) -> None:
    town = CASES[stage.kind.name].town
    told = await heard(stage, tmp_path, HIDDEN)

    ids = (town.ann, town.bob, town.eve, *town.also, *town.group.split(","))
    assert [each for each in ids if each.lower() in told] == []
    assert "who speaks" in told
    assert f"{stage.kind.name}:id-" in told


async def test_ids_are_told_where_the_owner_says_that_they_are_no_secret(stage: Stage, tmp_path: Path) -> None:
    told = await heard(stage, tmp_path, "\nprivacy:\n  hash_ids: false\n")

    assert f"{stage.kind.name}:{CASES[stage.kind.name].town.bob}".lower() in told


def test_every_channel_has_its_case() -> None:
    missing = [
        f"{name}: has no Case in CASES of tests/contracts/channels.py" for name in CHANNELS.keys() - CASES.keys()
    ]

    assert missing == []
