"""A skill for one channel, one kind of chat or one system is shown and started there alone; elsewhere the reason is
told."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.skills import list_skills
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.options import Invocation
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import ToolEnded
from hermes_agent.learning.drafts import OtherWriters
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.skills.invoke import Bundle, bundles_of
from hermes_agent.store.versions import Backing
from tests.app.place import Place, place
from tests.cli.shell import typed
from tests.skills.shelf import put

SECRET = "Stir three times."
ONLY = "metadata: {hermes: {channels: [Telegram], chat_kinds: [groups]}}\n"
TERMINAL = Conversation(platform="cli", chat_kind="folder", chat="here")
GROUP = Conversation(platform="telegram", chat_kind="group", chat="-5")
ALONE = Conversation(platform="telegram", chat_kind="dm", chat="7")
HERE = {TERMINAL: "the terminal", ALONE: "telegram (dm)"}


everywhere = pytest.mark.parametrize("where", [TERMINAL, ALONE, GROUP], ids=["terminal", "alone", "group"])


def home(folder: Path) -> None:
    made = put(folder / "home/skills", "brew-tea", "Brews green tea in a pot.", SECRET, ONLY)
    (made / "references").mkdir()
    (made / "references/leaves.md").write_text(SECRET)
    put(folder / "home/skills", "pour-tea", "Pours green tea into a cup.", "Pour it.")


async def calls(here: Place, name: str, arguments: dict[str, object]) -> str:
    """What the model is answered to a call in this session."""
    await here.say("Please do it")
    ended = [each.event for each in await here.log() if isinstance(each.event, ToolEnded)]
    assert ended[-1].tool == name
    return str(ended[-1].message.parts[0].text)


CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "view": ("skill_view", {"name": "brew-tea"}),
    "a file": ("skill_view", {"name": "brew-tea", "file": "references/leaves.md"}),
    "its own file": ("skill_view", {"name": "brew-tea", "file": "SKILL.md"}),
    "a patch that quotes": (
        "skill_manage",
        {"action": "patch", "name": "brew-tea", "old_string": "Stir two times.", "new_string": "Stir."},
    ),
}


@pytest.mark.parametrize("way", CALLS)
@everywhere
async def test_no_call_shows_it_elsewhere(tmp_path: Path, way: str, where: Conversation):
    home(tmp_path)
    name, arguments = CALLS[way]
    async with place(tmp_path, [Call(name, arguments), Say("Done.")]) as here:
        here.record = await here.runtime.hermes.open_session(where, here.runtime.owner, workspace=str(tmp_path))
        answer = await calls(here, name, arguments)

    if where is GROUP:
        assert "Stir three times" in answer
    else:
        assert "Stir three" not in answer
        assert f"only for the channel `Telegram` and the kind of chat `groups`; this is {HERE[where]}" in answer


Way = Callable[[Place], Awaitable[object]]


async def by_slash(here: Place) -> object:
    return (await here.type("/brew-tea green")).submit


async def by_second_slash(here: Place) -> object:
    return (await here.type("/pour-tea /brew-tea green")).submit


async def by_bundle(here: Place) -> object:
    kept = bundles_of(here.runtime.skills.home)
    kept.put(Bundle(name="teas", skills=("pour-tea", "brew-tea")))
    return (await here.type("/teas green")).submit


async def by_option(here: Place) -> object:
    record = here.record
    return await here.runtime.skills.preloaded("brew-tea", record.workspace, record.id, record.conversation)


@pytest.mark.parametrize("way", [by_slash, by_second_slash, by_bundle, by_option])
@everywhere
async def test_nothing_starts_it_elsewhere(tmp_path: Path, way: Way, where: Conversation):
    home(tmp_path)
    async with place(tmp_path, [Say("Done.")]) as here:
        here.record = await here.runtime.hermes.open_session(where, here.runtime.owner, workspace=str(tmp_path))
        if where is GROUP:
            assert SECRET in str(await way(here))
            return
        with pytest.raises(HermesError) as refused:
            await way(here)

    assert "`brew-tea` is only for the channel `Telegram`" in str(refused.value)
    assert f"this is {HERE[where]}" in str(refused.value)


@everywhere
async def test_no_list_and_no_hint_offers_it_elsewhere(tmp_path: Path, where: Conversation):
    home(tmp_path)
    asks = [Call("skills_list", {}), Call("skills_list", {"query": "tea"}), Call("skill_view", {"name": "brew-te"})]
    async with place(tmp_path, [*asks, Say("Done.")]) as here:
        here.record = await here.runtime.hermes.open_session(where, here.runtime.owner, workspace=str(tmp_path))
        lists = [await here.text("/skills"), await here.text("/skills green tea")]
        await here.say("Please make green tea")
        request = here.server.exchanges[-1].body
        frozen = await here.runtime.store.prefixes.get((await here.runtime.hermes.view(here.record.id)).prefix_hash)

    lists += [str(request), str(frozen)]
    assert all("pour-tea" in each for each in lists)
    assert ["brew-tea" in each for each in lists] == [where is GROUP] * len(lists)


async def test_completion_and_the_api_offer_what_is_for_them(tmp_path: Path):
    home(tmp_path)
    put(tmp_path / "home/skills", "tidy-desk", more="metadata: {hermes: {chat_kinds: private, channels: cli}}\n")
    async with place(tmp_path, [Say("Done.")]) as here:
        talk = ChatSession(here.runtime, Invocation())
        await talk.see_skills()
        completed = {name for name, _ in talk.skills}
        member = Principal(platform="api", user="ann", standing=Standing.MEMBER)
        shown = {card.name for card in await list_skills(Access(system=here.runtime, who=member), 100)}
        owners = {card.name for card in await list_skills(Access(system=here.runtime, who=here.runtime.owner), 100)}

    assert {"pour-tea", "tidy-desk"} <= completed
    assert "brew-tea" not in completed
    assert shown & {"pour-tea", "brew-tea", "tidy-desk"} == {"pour-tea"}
    assert {"pour-tea", "brew-tea", "tidy-desk"} <= owners


def test_the_owner_reads_it_anywhere(tmp_path: Path):
    home(tmp_path)

    assert SECRET in typed(tmp_path / "home", "skills", "show", "brew-tea").out
    assert "brew-tea" in typed(tmp_path / "home", "skills", "list").out


async def test_a_session_that_this_process_has_not_met_is_where_it_was(tmp_path: Path):
    home(tmp_path)
    async with place(tmp_path, [Say("Done.")]) as here:
        group = await here.runtime.hermes.open_session(GROUP, here.runtime.owner, workspace=str(tmp_path))
        tools = here.runtime.learner.work.writers(group).tools(Backing())
        view = {"name": "brew-tea"}
        assert SECRET in (await tools["skill_view"].run(view, beside(group.id))).parts[0].text
        with pytest.raises(HermesError, match="this is the terminal"):
            await tools["skill_view"].run(view, beside(here.record.id))


def beside(session: str) -> OtherWriters:
    return OtherWriters(key="", session=session, workspace="", speaker="")
