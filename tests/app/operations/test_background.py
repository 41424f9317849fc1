"""What goes on behind a session."""

from hermes_agent.app.operations.background import count_commands, is_reviewing
from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import place


async def test_background_commands_are_counted_while_they_run(tmp_path):
    start = Call("terminal", {"command": "sleep 300", "background": True}, id="a")
    script = [start, Say("Begun."), Call("process", {"action": "list"}, id="b"), Say("There.")]
    async with place(tmp_path, script) as here:
        assert await count_commands(here.runtime, here.record.id) == 0
        await here.say("Begin")

        assert await count_commands(here.runtime, here.record.id) == 1
        assert not is_reviewing(here.runtime)
