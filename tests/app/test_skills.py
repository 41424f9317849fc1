"""Skills of a whole system: in the prompt, beside the message, as tools."""

from hermes_agent.app.wiring import Options
from hermes_agent.core.events import ContextAdded, PrefixFrozen
from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import place
from tests.skills.shelf import put


async def test_a_skill_is_offered_found_and_loaded(tmp_path):
    put(tmp_path / "home/skills", "make-tea", "Makes green tea in a pot.", "Boil the water first.")
    async with place(tmp_path, [Call("skill_view", {"name": "make-tea"}), Say("Done.")]) as here:
        await here.say("Please make green tea")
        events = [entry.event for entry in await here.log()]
        prefix = next(event for event in events if isinstance(event, PrefixFrozen))
        frozen = await here.runtime.store.prefixes.get(prefix.hash)

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
