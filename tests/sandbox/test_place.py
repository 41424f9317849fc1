"""A chosen place is made when it is first used, once."""

import asyncio

import pytest

from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.sandbox.place import Command, lazy_place
from hermes_agent.testing.place import FakePlace


async def test_nothing_is_made_before_the_first_use():
    made: list[FakePlace] = []

    def make() -> FakePlace:
        made.append(FakePlace())
        return made[-1]

    place = lazy_place("fake", make)
    assert (place.name, made) == ("fake", [])

    running = await place.start("s/1", Command(text="true", folder="/"))
    await running.wait()
    assert (await place.attach("s/1")).exec_id == "s/1"
    assert await place.list("s") == ()
    assert await place.directory("s") == await made[0].directory("s")
    assert len(made) == 1


class Pruned(FakePlace):
    asked: list[int]

    async def prune(self, minutes: int, megabytes: int) -> int:
        self.asked += [minutes, megabytes]
        return 0


async def test_old_commands_are_forgotten_once_beside_the_first_command():
    made = Pruned()
    made.asked = []
    place = lazy_place("fake", lambda: made)

    for call in ("s/1", "s/2"):
        await place.start(call, Command(text="true", folder="/"))
    async with asyncio.timeout(5):
        while not made.asked:
            await asyncio.sleep(0)

    assert made.asked == [7 * 24 * 60, 4000]


async def test_a_place_that_was_never_used_has_nothing_to_close():
    place = lazy_place("fake", lambda: pytest.fail("made for nothing"))

    await place.close()


def test_pagers_and_prompts_are_switched_off() -> None:
    seen = scrubbed({"PAGER": "less", "TERM": "xterm"})

    assert (seen["PAGER"], seen["TERM"], seen["GIT_TERMINAL_PROMPT"]) == ("cat", "dumb", "0")


SOUNDING = "OPENAI_API_KEY ANTHROPIC_TOKEN AWS_SECRET_ACCESS_KEY DB_PASSWORD GITHUB_TOKEN HERMES_HOME SLACK_BOT_TOKEN"


@pytest.mark.parametrize("name", [*SOUNDING.split(), "my_secret", "TOKEN", "SENTRY_DSN"])
def test_what_sounds_like_a_secret_is_not_passed_on(name: str) -> None:
    assert name not in scrubbed({name: "x"})
    assert scrubbed({name: "x"}, [name])[name] == "x"


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "PASSAGE"])
def test_what_only_looks_a_little_like_one_is(name: str) -> None:
    assert scrubbed({name: "x"})[name] == "x"
