"""Where ids are hashed the model is told none of a person, over every channel and every way in which one comes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.providers.demo.script import Say
from tests.contracts.channels import MAKERS, Stage
from tests.gateway.harness import eventually, opened

HIDDEN = "\nprivacy:\n  hash_ids: true\n"
FORMS = ("{}", "<{}>", "**{}**", "_{}_", "({}):", "[she](mailto:{})", "for:{}/x", "I am {}.", "'{}',")


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """Who is on a platform by their ids: the owner, a member, somebody whom the agent never hears; and a group. `ways`
    are messages in which the platform itself names the third, each with its own fields; `{}` stands for the id."""

    ann: str
    bob: str
    eve: str
    group: str
    ways: tuple[tuple[str, Mapping[str, Any]], ...]
    also: tuple[str, ...] = field(default=())


def person(id_: str) -> dict[str, Any]:
    return {"id": id_, "username": "eve", "global_name": "Eve"}


TOWNS = {
    "discord": Town(
        ann="111122223333444401",
        bob="111122223333444402",
        eve="111122223333444403",
        group="111122223333444409",
        ways=(
            ("ask <@{}> or <@!{}>", {}),
            ("what of it", {"referenced_message": {"author": person("111122223333444403"), "content": "by <@{}>, {}"}}),
            ("see", {"message_snapshots": [{"message": {"content": "<@{}> said so"}}]}),
        ),
    ),
    "telegram": Town(
        ann="1111222201",
        bob="1111222202",
        eve="1111222203",
        group="-1001111222209",
        ways=(
            ("Eve knows {}", {"entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": "{}"}}]}),
            ("what of it", {"reply_to_message": {"message_id": 5, "from": {"id": "{}"}, "text": "I am {}"}}),
            ("this is {}", {"forward_origin": {"type": "user", "sender_user": {"id": "{}", "first_name": "Eve"}}}),
        ),
    ),
    "ntfy": Town(ann="anns-topic-77", bob="anns-topic-77", eve="anns-topic-77", group="ops-topic-77", ways=()),
    "slack": Town(
        ann="U0ANN1234",
        bob="U0BOB1234",
        eve="U0EVE1234",
        group="C0OPS1234",
        ways=(("ask <@{}> or <@{}|eve>, {}", {}),),
    ),
    "matrix": Town(
        ann="@ann:people.test",
        bob="@bob:people.test",
        eve="@eve:people.test",
        group="!ops:people.test",
        ways=(
            ("ask {}: or https://matrix.to/#/{}", {"m.mentions": {"user_ids": ["{}"]}}),
            ("> <{}> I said\n\nwhat of it", {}),
        ),
    ),
    "email": Town(
        ann="ann@people.test",
        bob="bob@people.test",
        eve="eve@people.test",
        group="ann@people.test,bob@people.test",
        also=("ben@people.test",),
        ways=(
            ("What of it?\n\nOn Monday, Eve <{}> wrote:\n> I am {}", {}),
            ("See below.\n\n---- Forwarded ----\nFrom: {}\nTo: ben@people.test\nSubject: Hi\n\nHello {}", {}),
            ("So?\n\n{} wrote:\n> ben@people.test asked", {}),
        ),
    ),
}


def filled(plain: Any, id_: str) -> Any:  # noqa: ANN401  whatever JSON holds
    """A message's fields with the id of somebody in them."""
    match plain:
        case "{}" if id_.isdecimal():
            return int(id_)
        case str():
            return plain.replace("{}", id_)
        case dict():
            return {name: filled(each, id_) for name, each in plain.items()}
        case list():
            return [filled(each, id_) for each in plain]
    return plain


def quoted(name: str) -> str:
    """A name as every platform takes it, mail too."""
    return f'"{name}"' if "@" in name else name


@pytest.fixture(params=sorted(CHANNELS))
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with MAKERS[request.param](tmp_path) as made:
        yield replace(made, kind=replace(made.kind, make=lambda _: made.channel))


async def heard(stage: Stage, tmp_path: Path, more: str) -> str:
    """All that the model was told when people had spoken in every way, in lower case."""
    town, double = TOWNS[stage.kind.name], stage.double
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

        try:
            await eventually(is_told, 6)
        except TimeoutError:
            print("MISSING", [m for m in marks if m not in told])
            print(
                (tmp_path / "home/logs").exists()
                and [x.read_text()[-3000:] for x in (tmp_path / "home/logs").iterdir()]
            )
            raise
    return unquote(told).lower()


async def test_no_id_of_a_person_or_chat_reaches_the_model_where_ids_are_hashed(stage: Stage, tmp_path: Path) -> None:
    town = TOWNS[stage.kind.name]
    told = await heard(stage, tmp_path, HIDDEN)

    ids = (town.ann, town.bob, town.eve, *town.also, *town.group.split(","))
    assert [each for each in ids if each.lower() in told] == []
    assert "who speaks" in told
    assert f"{stage.kind.name}:id-" in told


async def test_ids_are_told_where_the_owner_says_that_they_are_no_secret(stage: Stage, tmp_path: Path) -> None:
    told = await heard(stage, tmp_path, "\nprivacy:\n  hash_ids: false\n")

    assert f"{stage.kind.name}:{TOWNS[stage.kind.name].bob}".lower() in told


def test_every_channel_has_its_people() -> None:
    assert TOWNS.keys() == CHANNELS.keys()
