"""Skills of a whole system: in the prompt, beside the message, as tools."""

from dataclasses import replace

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.app.opening import Options
from hermes_agent.app.skills import Skills, no_store
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.core.events import ContextAdded, MessageTaken, PrefixFrozen
from hermes_agent.core.messages import Origin
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.walls import Walls
from hermes_agent.skills.depot import State
from hermes_agent.skills.invoke import hash_of
from hermes_agent.skills.skill import SkillSettings
from tests.app.place import place
from tests.skills.shelf import put


async def test_a_skill_is_offered_found_and_loaded(tmp_path):
    put(tmp_path / "home/skills", "make-tea", "Makes green tea in a pot.", "Boil the water first.")
    async with place(tmp_path, [Call("skill_view", {"name": "make-tea"}), Say("Done.")]) as here:
        await here.runtime.learner.work.learned.adopt("make-tea", "")
        await here.say("Please make green tea")
        events = [entry.event for entry in await here.log()]
        prefix = next(event for event in events if isinstance(event, PrefixFrozen))
        frozen = await here.runtime.store.prefixes.get(prefix.hash)
        shown = await here.runtime.store.read(lambda tx: tx.rows("SELECT eligible, read FROM exposure"))

    assert [("make-tea" in eligible, read) for eligible, read in shown] == [(True, '["make-tea"]')]
    told = next(event for event in events if isinstance(event, ContextAdded))
    assert "make-tea: Makes green tea" in told.message.text
    assert "- make-tea: Makes green tea" in next(s.text for s in frozen.sections if s.name == "skills")
    assert any("Boil the water first." in str(event) for event in events)


async def test_who_lacks_the_toolset_is_told_nothing(tmp_path):
    put(tmp_path / "home/skills", "make-tea", "Makes green tea in a pot.")
    async with place(tmp_path, [Say("Done.")], Options(toolsets=("files",))) as here:
        await here.say("Please make green tea")
        events = [entry.event for entry in await here.log()]

    prefix = next(event for event in events if isinstance(event, PrefixFrozen))
    assert next(s.tokens for s in prefix.sections if s.name == "skills") == 0
    assert not any("make-tea" in str(event) for event in events)


async def test_a_skill_is_a_command_on_every_surface(tmp_path):
    put(tmp_path / "home/skills", "make-tea", body="Boil. $ARGUMENTS")
    async with place(tmp_path, [Say("Done.")]) as here:
        await here.runtime.learner.work.learned.adopt("make-tea", "")
        done = await here.type("/make-tea green")
        await here.say(done.submit)
        taken = next(entry.event for entry in await here.log() if isinstance(entry.event, MessageTaken))

    assert [part.origin for part in taken.message.parts] == [Origin.SKILL, Origin.OWNER]
    assert "Boil. green" in taken.message.text


async def test_the_words_behind_a_skill_are_of_whoever_said_them(tmp_path):
    put(tmp_path / "home/skills", "make-tea")
    group, alone = (Conversation(platform="telegram", chat_kind=kind, chat="5") for kind in ("group", "dm"))
    ann = Principal(platform="telegram", user="7", standing=Standing.MEMBER, name="Ann")
    async with place(tmp_path, [Say("Done.")]) as here:
        said = []
        for where in (group, alone):
            record = await here.runtime.hermes.open_session(where, ann, workspace=str(tmp_path))
            inbound = replace(here.inbound("/make-tea green"), principal=ann, conversation=where)
            done = await perform(Desk(runtime=here.runtime, record=record, inbound=inbound))
            said.append(done.submit.parts[-1])

    assert [part.origin for part in said] == [Origin.MEMBER] * 2
    assert [part.text.strip() for part in said] == ["[Ann] green", "green"]


async def test_a_guest_uses_no_skill(tmp_path):
    put(tmp_path / "home/skills", "make-tea")
    async with place(tmp_path, [Say("Done.")]) as here:
        stranger = Principal(platform="telegram", user="7", standing=Standing.GUEST)
        for line in ("/make-tea", "/skills"):
            inbound = replace(here.inbound(line), principal=stranger)
            with pytest.raises(HermesError):
                await perform(Desk(runtime=here.runtime, record=here.record, inbound=inbound))


@pytest.fixture
def jailed() -> None:
    try:
        jail_of("any", Walls())
    except CannotJail as reason:
        pytest.skip(str(reason))


async def trust(here, name):
    library = here.runtime.skills.library
    trusted = hash_of(await library.read(await library.find(name)))
    await library.state.change(lambda _: State(trusted={name: trusted}))


@pytest.mark.usefixtures("jailed")
async def test_a_skill_s_command_sees_the_skill_and_neither_keys_nor_network(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text("KEY=sk-secret\n")
    read = "cat ${HERMES_SKILL_DIR}/references/a.md; cat ../home/.env; cat ../home/config.yaml"
    body = f"!`{read}` !`touch ${{HERMES_SKILL_DIR}}/x`"
    folder = put(tmp_path / "home/skills", "look", body=body)
    (folder / "references").mkdir()
    (folder / "references/a.md").write_text("Read me.")
    async with place(tmp_path, [Say("Done.")]) as here:
        await trust(here, "look")
        text = (await here.type("/look")).submit.text

    assert "Read me." in text
    assert "sk-secret" not in text
    assert "base_url" not in text
    assert not (folder / "x").exists()


async def test_without_a_jail_a_skill_s_command_does_not_run(tmp_path):
    put(tmp_path / "home/skills", "look", body="!`touch ran`")
    async with place(tmp_path, [Say("Done.")]) as here:
        here.runtime.skills._place = NoPlace()
        await trust(here, "look")
        text = (await here.type("/look")).submit.text

    assert "[not run: `touch ran`; Commands cannot be jailed here" in text


class NoPlace:
    async def start(self, exec_id, command):
        raise CannotJail("Commands cannot be jailed here (`terminal.jail`).")

    async def close(self):
        pass


@pytest.mark.usefixtures("jailed")
async def test_a_trusted_skill_s_command_runs_in_the_place_and_not_too_long(tmp_path):
    put(tmp_path / "home/skills", "look", body="Here: !`echo $((6*7)); pwd` !`exit 3` !`sleep 20`")
    async with place(tmp_path, [Say("Done.")], more="skills:\n  inline_shell_timeout: 1\n") as here:
        await trust(here, "look")
        text = (await here.type("/look")).submit.text

    assert f"42\n{tmp_path / 'work'}" in text
    assert "[`exit 3` ended with 3]" in text
    assert "[ended: `sleep 20` took more than 1 s]" in text


async def test_skills_without_a_database_are_read_only(tmp_path):
    kept = Skills(Home(root=tmp_path, base=tmp_path), SkillSettings(), SystemClock())

    with pytest.raises(ConfigError):
        no_store()
    assert await kept._run("/", [], "true") == "[not run: `true`]"
    await kept.close()
