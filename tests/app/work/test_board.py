"""The board joined to a process: where it lives, who dispatches, and which sessions have its tools."""

from pathlib import Path

from hermes_agent.app.manifest import CORE_ON, NOT_FOR_CHILDREN, BuiltIn
from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED, Settings
from hermes_agent.app.work.board import base_of, board_alarm, opened_board, own_board
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.mandate import Work
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.database import open_store
from hermes_agent.tools.surfaces import GUEST
from hermes_agent.work.board.dispatcher import Dispatcher
from tests.app.place import place
from tests.work.board.boards import made


def settings_of(home: Home):
    return load(home, Settings).usable().value


async def test_a_profile_uses_the_board_of_its_base_home(tmp_path: Path):
    base = Home(root=tmp_path / "home", base=tmp_path / "home").ensure()
    profile = Home(root=base.root / "profiles/ann", base=base.root, profile="ann").ensure()
    assert base_of(profile) == base
    clock = SystemClock()
    async with own_board(base, settings_of(base), clock) as board:
        card = await made(board)
    store = await open_store(profile.database)
    try:
        async with opened_board(profile, settings_of(profile), store, clock) as board:
            assert (await board.cards.get(card.id)).title == "x"
            assert board.home == base
        assert await store.boards.list_cards() == []
    finally:
        await store.close()


async def test_a_serving_process_of_the_base_home_dispatches_unless_told_not_to(tmp_path: Path):
    async with place(tmp_path, [Say("x")], Options(queue=SERVED, own_only=False)) as here:
        assert isinstance(board_alarm(here.runtime.snapshots.now.needs), Dispatcher)
    (tmp_path / "other").mkdir()
    more = "board:\n  dispatch: false\n"
    async with place(tmp_path / "other", [Say("x")], Options(queue=SERVED, own_only=False), more=more) as here:
        assert board_alarm(here.runtime.snapshots.now.needs) is None


async def test_the_tools_are_core_in_sessions_of_cards_alone_and_absent_for_guests_and_children(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as here:
        built: BuiltIn = here.runtime.snapshots.now.toolkit.built_in

        def board_tools(surface: str) -> dict[str, bool]:
            tools = {tool.schema.name: getattr(tool, "core", True) for tool in built.tools(surface, ())}
            return {name: core for name, core in tools.items() if name.startswith("kanban_")}

        assert (CORE_ON["board"], set(NOT_FOR_CHILDREN)) == (Work.CARD, {"board"})
        assert len(board_tools(Work.CARD)) == len(board_tools("cli")) == 20
        assert set(board_tools(Work.CARD).values()) == {True}
        assert set(board_tools("cli").values()) == {False}
        assert board_tools(GUEST) == board_tools("webhook") == board_tools(Work.CHILD) == {}
