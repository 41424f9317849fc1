"""Large input and long results go with the last session whose log names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.app.intake.session_files import without_files
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.sessions import branch_session, delete_session
from hermes_agent.app.process import Options
from hermes_agent.core.effects import Effect
from hermes_agent.core.tool import tool
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.tools.schema import collect
from tests.app.place import Place, place

LARGE = "a line of a large message\n" * 20_000


class Wordy:
    """A tool that says more than stands in an answer."""

    @tool(effect=Effect.READS)
    async def recite(self) -> str:
        """Recite it all."""
        return LARGE


def script(heard: Heard) -> Call | Say:
    return Call("recite", {}) if heard.last.text.startswith("Recite") else Say("Read.")


def files(here: Place) -> list[str]:
    cache = here.runtime.home.cache
    return sorted(path.parent.name for name in ("input", "results") for path in cache.glob(f"{name}/*"))


async def test_files_stay_as_long_as_any_session_names_them(tmp_path: Path):
    async with place(tmp_path, script, Options(extra_tools=collect([Wordy()])[0])) as here:
        await here.say(LARGE)
        await here.say("Recite")
        first, owner = here.record.id, Access(system=here.runtime, who=here.runtime.owner)
        branch = await branch_session(owner, first)
        await here.type("/new")
        await here.say(f"{LARGE}of this session alone")
        assert files(here) == ["input", "input", "results"]

        await delete_session(owner, first)
        assert files(here) == ["input", "input", "results"]
        await delete_session(owner, branch.id)
        assert files(here) == ["input"]
        async with without_files(here.runtime.store, here.runtime.home):
            assert await here.runtime.store.sessions.prune(here.runtime.clock.now() + 1) == (here.record.id,)
        assert files(here) == []


async def test_what_waits_to_be_read_keeps_its_file(tmp_path: Path):
    async with place(tmp_path, script) as here:
        store = here.runtime.store
        await here.say(LARGE)
        (name,) = (here.runtime.home.cache / "input").iterdir()
        await here.type("/new")
        await store.inbox.accept(here.inbound(f"Read {name}"), here.record.id, "later")

        async with without_files(store, here.runtime.home):
            await store.sessions.prune(here.runtime.clock.now() + 1)

        assert name.exists()


@pytest.mark.parametrize("name", ["cache/input/../../hermes.db", "cache/input/0123456789abcdef0123", "cache/inputs/x"])
async def test_a_log_that_names_what_is_no_such_file_deletes_nothing(tmp_path: Path, name: str):
    async with place(tmp_path, script) as here:
        await here.say(f"Look at {name}.")

        await delete_session(Access(system=here.runtime, who=here.runtime.owner), here.record.id)

        assert here.runtime.home.database.exists()
