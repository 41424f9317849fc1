"""What one reading of the settings made."""

from pathlib import Path

from hermes_agent.providers.demo.script import Say
from tests.app.place import place
from tests.gateway.harness import eventually


async def test_one_that_fails_at_the_end_of_a_run_keeps_nobody_else_from_hearing_of_it(tmp_path: Path):
    async with place(tmp_path, [Say("Hello.")]) as here:

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        heard = list[str]()
        now = here.runtime.snapshots.now
        now.afterwards = (broken, *now.afterwards, lambda record, *_: heard.append(record.id))

        assert (await here.say("Hi")).text == "Hello."
        await eventually(lambda: len(heard) == 1)
