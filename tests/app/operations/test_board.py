"""The board for people: from the chat, from another chat, and for who may not."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.operations import board as operations
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.kanban import counted, listed, logged, planned, ran, shown
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError, UnknownCard
from hermes_agent.providers.demo.script import Say
from tests.app.place import Place, place

ANNA = Principal(platform="telegram", user="2", standing=Standing.MEMBER)
CHAT = Conversation(platform="telegram", chat="7")


def access(here: Place, **more) -> Access:
    return replace(Access(system=here.runtime, who=here.runtime.owner), **more)


async def test_a_card_goes_through_the_slash_command(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as here:
        said = await here.text("/kanban create Write the report of today")
        card = said.split()[0]
        assert said == f"{card} is ready."
        listing = await here.text("/kanban")
        assert "Write the report of today" in listing
        assert operations.NOBODY in listing
        assert (await here.text(f"/kanban comment {card} use the old template")) == "Said."
        assert "use the old template" in await here.text(f"/kanban show {card}")
        assert (await here.text(f"/kanban block {card} not now please")) == f"{card} is blocked."
        assert (await here.text(f"/kanban unblock {card} go on")) == f"{card} is ready."
        assert (await here.text(f"/kanban complete {card} wrote it by hand")) == f"{card} is done."
        assert "unblock by" in await here.text(f"/kanban log {card}")
        assert (await here.text(f"/kanban runs {card}")) == "Nobody worked on it yet."
        assert (await here.text("/kanban stats")).startswith("main: 1 done")
        for line, why in (
            ("/kanban fly", "Say `/kanban list"),
            ("/kanban show", "Say"),
            ("/kanban show t_0", "no card"),
        ):
            with pytest.raises(HermesError, match=why):
                await here.text(line)


async def test_a_chat_is_told_how_its_card_goes(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as here:
        chat = access(here, where=CHAT)
        card = await operations.create_card(chat, "Buy milk", hold=True)
        await operations.unblock_card(chat, card.id)
        await operations.complete_card(chat, card.id, "Bought.")
        (slot,) = await here.runtime.store.outbox.claim(["telegram"])
        assert (slot.to, slot.content.text) == (CHAT, f"Done: {card.id} Buy milk\n\nBought.")
        assert "is no longer told" in await operations.watch_card(chat, card.id, stop=True)
        with pytest.raises(HermesError, match="Say which chat"):
            await operations.watch_card(access(here), card.id)


async def test_in_a_group_the_owner_too_sees_only_what_is_theirs_there(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as here:
        secret = await operations.create_card(access(here), "Secret", hold=True)
        group = replace(CHAT, chat_kind="group")
        owner = Principal(platform="telegram", user="1", standing=Standing.OWNER)
        there = access(here, who=owner, where=group)
        assert (await operations.list_cards(there)).cards == []
        with pytest.raises(UnknownCard):
            await operations.show_card(there, secret.id)


async def test_members_have_their_own_cards_and_guests_none(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as here:
        owners = await operations.create_card(access(here), "Mine", hold=True)
        anna = access(here, who=ANNA, where=CHAT)
        own = await operations.create_card(anna, "Hers", hold=True)
        assert [row.id for row in (await operations.list_cards(anna)).cards] == [own.id]
        for attempt in (
            operations.comment_card(anna, owners.id, "x"),
            operations.watch_card(anna, owners.id),
            operations.list_runs(anna, owners.id),
        ):
            with pytest.raises(UnknownCard):
                await attempt
        for refused in (
            operations.count_cards(anna),
            operations.list_boards(anna, "new"),
            operations.export_cards(anna),
            operations.import_cards(anna, "x"),
            operations.attach_file(anna, own.id, "/etc/passwd"),
            operations.watch_card(anna, "board:main"),
            operations.watch_card(anna, own.id, "telegram:dm:999"),
            operations.cancel_card(anna, owners.id),
        ):
            with pytest.raises(HermesError):
                await refused
        with pytest.raises(HermesError, match="Guests have no board"):
            await operations.list_cards(access(here, who=replace(ANNA, standing=Standing.GUEST)))


async def test_everything_reads_as_lines(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as here:
        mine = access(here, folder=str(tmp_path))
        first = await operations.create_card(mine, "First", hold=True, body="do it", skills="a, b")
        second = await operations.create_card(mine, "Second", parents=first.id, check="human")
        assert second.parents_left == 1
        assert (await operations.link_cards(mine, first.id, second.id, remove=True)).status == "ready"
        assert (await operations.assign_card(mine, first.id, "default")).assignee == ""
        assert (await operations.update_card(mine, second.id, check="none", title="2nd")).validator == ""
        assert (await operations.move_card(mine, second.id, "todo")).status == "todo"
        assert (await operations.start_card(mine, second.id)).status == "ready"
        (tmp_path / "note").write_text("n")
        await operations.attach_file(mine, first.id, "note")
        assert "files: note" in shown(await operations.show_card(mine, first.id))
        assert "attached by" in logged(await operations.list_events(mine, first.id))
        assert ran(await operations.list_runs(mine, first.id)) == ""
        assert listed(await operations.list_cards(mine, "ready")).startswith(f"{second.id}  ready")
        assert "1 blocked" in counted(await operations.count_cards(mine))
        assert await operations.list_boards(mine, "work") == ["main", "work"]
        exported = await operations.export_cards(mine)
        (tmp_path / "out.jsonl").write_text(exported)
        plan = await operations.import_cards(mine, "out.jsonl", board="work")
        assert planned(plan).startswith("Would import 2 cards with 0 links")
        assert "Imported 2" in planned(await operations.import_cards(mine, "out.jsonl", apply=True, board="work"))
        for attempt, why in (
            (operations.import_cards(mine, "none"), "no file"),
            (operations.move_card(mine, first.id, "redy"), "Did you mean `ready`"),
            (operations.list_cards(mine, "redy"), "Did you mean `ready`"),
        ):
            with pytest.raises(HermesError, match=why):
                await attempt
        await operations.cancel_card(mine, first.id)
        await operations.archive_card(mine, first.id)
        assert "is gone" in await operations.delete_card(mine, second.id)
