"""What people, agents and workers do with cards, and what they may not."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import HermesError, LostLease, UnknownCard
from hermes_agent.core.messages import Origin
from hermes_agent.store.database import open_store
from hermes_agent.store.work.cards import Reason, Status
from hermes_agent.work.board.new_cards import LONGEST_BODY, MAIN, NewCard
from hermes_agent.work.board.rules import By, NotMoved, Order, Role, Verb
from hermes_agent.work.board.worker import adopt
from hermes_agent.work.board.workspaces import LARGEST
from tests.store.made import SOON, die
from tests.work.board.boards import ANNA, ME, board_at, claimed, ended, held, made, opened, text
from tests.work.board.test_tools import bench

AGENT = By(name="cli:me", role=Role.AGENT, sees_all=True)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"title": " "}, "1 to 200"),
        ({"title": "x" * 201}, "1 to 200"),
        ({"title": "x", "priority": 5}, "0 \\(most urgent\\) to 4"),
        ({"title": "x", "max_minutes": -5}, "Minutes are 0"),
        ({"title": "x", "max_minutes": 1e308}, "Minutes are 0"),
        ({"title": "x", "max_attempts": 10**20}, "Attempts are 0"),
        ({"title": "x", "branch": "--upload-pack=x"}, "no name of a branch"),
        ({"title": "x", "check": "profile:nobody"}, "no check `profile:nobody`"),
        ({"title": "x", "workspace": "dir:/tmp/\0x"}, "is not a folder"),
        ({"title": "x", "assignee": "cder"}, "no profile `cder`. Did you mean `coder`"),
        ({"title": "x", "board": "mian"}, "Did you mean `main`"),
        ({"title": "x", "workspace": "worktre:/x"}, "Did you mean `worktree`"),
        ({"title": "x", "workspace": "dir:/does/not/exist"}, "is not a folder"),
        ({"title": "x", "workspace": "dir:"}, "is not a folder"),
        ({"title": "x", "check": "test"}, "Did you mean `tests`"),
        ({"title": "x", "check": "profile:../x"}, "There is no check"),
        ({"title": "x", "parents": ("t_000000",)}, "There is no card"),
    ],
)
async def test_what_is_wrong_with_a_new_card_is_named(tmp_path: Path, said: dict, why: str):
    async with opened(tmp_path) as board:
        (board.home.base / "profiles/coder").mkdir(parents=True)
        with pytest.raises(HermesError, match=why):
            await board.create(ME, NewCard(**said))
        assert await board.cards.list_cards() == []


async def test_a_folder_of_credentials_is_no_workspace(tmp_path: Path):
    async with opened(tmp_path) as board:
        (tmp_path / ".ssh").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / ".ssh")
        for name in (".ssh", "link"):
            with pytest.raises(HermesError, match="credentials"):
                await made(board, workspace=f"dir:{tmp_path / name}")
        assert (await made(board, workspace=f"dir:{tmp_path}")).folder == str(tmp_path)


async def test_only_the_owner_says_which_command_checks_a_card(tmp_path: Path):
    async with opened(tmp_path) as board:
        assert (await made(board, check="command:true")).validator == "command:true"
        assert (await made(board, check="tests", by=AGENT)).validator == "command:pytest -q"
        for by in (AGENT, ANNA, replace(ME, tainted=True)):
            with pytest.raises(HermesError, match="no check"):
                await made(board, by=by, check="command:rm -rf /")


async def test_the_words_of_others_keep_their_label(tmp_path: Path):
    async with opened(tmp_path) as board:
        others = replace(ME, tainted=True), replace(AGENT, tainted=True)
        origins = [(await made(board, by=by)).origin for by in (ME, ANNA, AGENT, *others)]
        assert origins == [Origin.OWNER, Origin.MEMBER, Origin.MODEL, Origin.MEMBER, Origin.TOOL]


async def test_a_card_is_labelled_as_the_worst_of_who_wrote_it(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board)
        assert (await board.update(replace(AGENT, tainted=True), card.id, priority=1)).origin is Origin.OWNER
        assert (await board.update(replace(AGENT, tainted=True), card.id, body="More")).origin is Origin.TOOL
        assert (await board.update(ME, card.id, title="Mine")).origin is Origin.TOOL


async def test_odd_titles_are_kept_on_one_line(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board, "a\n\x1b[31mred\x1b[0m <b>\u202e txt", body="nul \0 and \ud800")
        again = await board.cards.get(card.id)
        assert again.title == "a \x1b[31mred\x1b[0m <b>\u202e txt"
        assert again.body == "nul \0 and \ud800"
        assert (await board.cards.list_cards())[0].title == again.title


async def test_a_long_body_becomes_a_file_of_the_card(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board, body="é" * (LONGEST_BODY + 1))
        (file,) = await board.cards.files(card.id)
        assert (file.name, len(card.body) < LONGEST_BODY) == ("body.md", True)
        assert text(file.path) == "é" * (LONGEST_BODY + 1)


async def test_a_worker_creates_cards_that_come_after_its_own_and_not_many(tmp_path: Path):
    async with opened(tmp_path) as board:
        own = await made(board)
        by = await held(board)
        for _ in range(10):
            child = await made(board, by=by)
            assert (child.status, child.parents_left, child.created_by) == (Status.TODO, 1, own.id)
        with pytest.raises(HermesError, match="at most 10"):
            await made(board, by=by)
        await board.complete(by, own.id, "Done.")
        assert (await board.cards.get(child.id)).status is Status.READY


async def test_a_card_that_waits_for_another_is_blocked_until_that_is_done(tmp_path: Path):
    async with opened(tmp_path) as board:
        own, other = await made(board, priority=0), await made(board)
        by = await held(board)
        await board.block(by, own.id, Reason.DEPENDENCY, "needs it", other.id)
        assert (await board.cards.get(own.id)).blocked is Reason.DEPENDENCY
        await ended(board, own.id)
        await board.complete(ME, other.id, "by hand")
        assert (await board.cards.get(own.id)).status is Status.READY
        again = await held(board)
        with pytest.raises(HermesError, match="is done"):
            await board.block(again, own.id, Reason.DEPENDENCY, "needs it", other.id)
        with pytest.raises(HermesError, match="with the card it waits for"):
            await board.block(again, own.id, Reason.DEPENDENCY, "x")


async def test_a_zombie_writes_nothing(tmp_path: Path):
    """Its worker was silent for too long; another has the card, and it wakes up."""
    zombie, peer = [await open_store(tmp_path / "hermes.db", timings=SOON) for _ in range(2)]
    try:
        boards = [board_at(store, tmp_path / "home") for store in (zombie, peer)]
        await made(boards[0])
        card, run = await claimed(boards[0])
        by = (await adopt(boards[0], card.id, run.epoch)).by
        await peer.workers.register()
        await die(zombie)
        await reaped_all(peer, zombie.workers.id)
        end = Order(verb=Verb.END)
        await boards[1].end(run, end, None, "")
        again, second = await claimed(boards[1])
        assert again.epoch > by.epoch
        await adopt(boards[1], again.id, second.epoch)

        for _ in range(50):
            with pytest.raises(LostLease):
                await boards[0].complete(by, card.id, "mine")
            with pytest.raises(LostLease):
                await boards[0].block(by, card.id, Reason.NEEDS_INPUT, "mine")
            with pytest.raises(LostLease):
                await boards[0].runs.progress(card.id, by.epoch, "mine")
        assert (await boards[1].cards.get(card.id)).status is Status.RUNNING
        assert [each.note for each in await boards[1].runs.of(card.id)] == ["", ""]
    finally:
        await zombie.close()
        await peer.close()


async def reaped_all(peer, worker: str) -> None:
    while worker in await peer.card_runs.alive():
        await peer.workers.reap()


async def test_files_are_copied_and_only_files(tmp_path: Path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "out.txt").write_text("result")
    (folder / "deep").mkdir()
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("/etc")
    (tmp_path / "outside").write_text("o")
    os.mkfifo(folder / "pipe")
    os.truncate(os.open(folder / "huge", os.O_CREAT | os.O_WRONLY), LARGEST + 1)
    async with opened(tmp_path) as board:
        card = await made(board)
        by = await held(board, str(folder))
        kept = await board.attach(by, card.id, "out.txt")
        (folder / "out.txt").unlink()
        assert (text(kept.path), kept.bytes) == ("result", 6)
        for name, why in (
            ("../outside", "without `..`"),
            ("deep", "not a file"),
            ("pipe", "not a file"),
            ("link", "cannot be attached"),
            ("huge", "at most 25"),
            ("", "without"),
            ("none", "No such file"),
            ("/dev/null", "out of the workspace"),
            (str(tmp_path / "outside"), "out of the workspace"),
            ("up/passwd", "out of the workspace"),
        ):
            with pytest.raises(HermesError, match=why):
                await board.attach(by, card.id, name)
        assert (await board.attach(ME, card.id, str(tmp_path / "outside"))).name == "outside"
        await board.complete(by, card.id, "Done.", artefacts=())
        with pytest.raises(LostLease):
            await board.attach(by, card.id, "huge")


async def test_a_completed_card_keeps_its_artefacts(tmp_path: Path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a").write_text("a")
    async with opened(tmp_path) as board:
        card = await made(board)
        by = await held(board, str(tmp_path / "work"))
        with pytest.raises(HermesError, match="No such file"):
            await board.complete(by, card.id, "Done.", artefacts=["a", "b"])
        assert (await board.cards.get(card.id)).status is Status.RUNNING
        await board.complete(by, card.id, "Done.", artefacts=["a"])
        assert [file.name for file in await board.cards.files(card.id)] == ["a"]


async def test_what_is_deleted_has_no_history_or_stays_in_the_archive(tmp_path: Path):
    async with opened(tmp_path) as board:
        fresh, ran = await made(board), await made(board, priority=0)
        await claimed(board)
        assert "is gone" in await board.delete(ME, fresh.id)
        assert "was archived" in await board.delete(ME, ran.id)
        assert (await board.cards.get(ran.id)).status is Status.ARCHIVED
        with pytest.raises(UnknownCard):
            await board.cards.get(fresh.id)


async def test_a_closed_card_says_nothing_new(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board, hold=True)
        assert (await board.update(ME, card.id, title="b", check="tests", max_minutes=2)).max_seconds == 120
        await board.move(ME, card.id, Order(verb=Verb.CANCEL))
        for attempt in (board.update(ME, card.id, title="c"), board.link(ME, (await made(board)).id, card.id)):
            with pytest.raises(NotMoved, match="cancelled"):
                await attempt
        with pytest.raises(HermesError, match="Say what to change"):
            await board.update(ME, card.id)


async def test_watching_needs_something_to_watch(tmp_path: Path):
    async with opened(tmp_path) as board:
        to = Conversation(platform="telegram", chat="1")
        for what in ("t_000000", "board:none"):
            with pytest.raises(HermesError, match="There is no"):
                await board.watch(what, to)
        await board.watch(f"board:{MAIN}", to)
        await board.new.create_board("work")
        with pytest.raises(HermesError, match="no name of a board"):
            await board.new.create_board("../x")


@pytest.mark.parametrize("role", [Role.MEMBER, Role.AGENT])
async def test_who_is_not_the_owner_gives_only_folders_in_which_they_work(tmp_path: Path, role: Role):
    (tmp_path / "own" / "sub").mkdir(parents=True)
    (tmp_path / "private").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path / "private")
    nowhere = replace(ANNA, role=role, sees_all=role is Role.AGENT)
    there = replace(nowhere, folder=str(tmp_path / "own"))
    async with opened(tmp_path) as board:
        assert (await made(board, by=there, workspace="dir:sub")).folder == str(tmp_path / "own" / "sub")
        for by, where in ((nowhere, "dir:private"), (there, "worktree:private"), (there, "dir:own/link")):
            with pytest.raises(HermesError, match="outside of the folder that you work in"):
                await made(board, by=by, workspace=where.replace(":", f":{tmp_path}/"))
        assert (await made(board, workspace=f"dir:{tmp_path}/private")).folder == str(tmp_path / "private")


async def test_no_card_waits_for_one_that_its_person_may_not_see(tmp_path: Path):
    async with opened(tmp_path) as board:
        secret, own = await made(board, "secret"), await made(board, "own", by=ANNA)
        for attempt in (
            board.create(ANNA, NewCard(title="x", parents=(secret.id,))),
            board.link(ANNA, secret.id, own.id),
            board.block(ANNA, own.id, Reason.DEPENDENCY, "wait", secret.id),
            board.comment(ANNA, secret.id, "Do something else."),
            board.move(ANNA, secret.id, Order(verb=Verb.CANCEL)),
        ):
            with pytest.raises(UnknownCard):
                await attempt
        assert await board.cards.parents(own.id) == []


async def test_a_worker_sees_what_the_person_of_its_card_sees_and_its_cards_are_theirs(tmp_path: Path):
    async with opened(tmp_path) as board:
        secret = await made(board, "secret", hold=True)
        card = await made(board, "own", by=ANNA)
        worker = await held(board)
        with pytest.raises(UnknownCard):
            await board.view(worker, secret.id)
        assert "secret" not in await bench(board, worker, tmp_path)("kanban_list")
        found = await board.create(worker, NewCard(title="child"))
        assert (found.card.created_by, found.card.person) == (card.id, ANNA.name)
        assert (await board.view(ANNA, found.card.id)).card.title == "child"
        listed = await board.cards.list_cards(author=ANNA.name)
        assert {row.title for row in listed} == {"own", "child"}


async def test_a_new_title_stays_on_one_line(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board)
        assert (await board.update(ME, card.id, title="a\nt_1  done")).title == "a t_1 done"


async def test_a_profile_of_the_name_of_the_home_without_one_is_no_assignee(tmp_path: Path):
    async with opened(tmp_path) as board:
        assert (await made(board, assignee="default")).assignee == ""
        (board.home.base / "profiles" / "default").mkdir(parents=True)
        with pytest.raises(HermesError, match="rename it"):
            await made(board, assignee="default")
