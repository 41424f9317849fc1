"""A whole system whose model answers one way in a conversation and another way in a review of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hermes_agent.app.opening import Options
from hermes_agent.core.messages import Role
from hermes_agent.learning.reviewing import OPENING, RAW
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.store.learning.jobs import Job
from hermes_agent.testing.model_servers import Exchange
from hermes_agent.testing.scripted import Step
from tests.app.place import Place, place

Answers = Sequence[Step] | Callable[[Heard], Step]


@dataclass
class Script:
    """`talk` answers in the conversation, `clean` and `raw` in the passes of a review, by how often the model has
    spoken there."""

    talk: Answers
    clean: Answers = (Say("Nothing to keep."),)
    raw: Answers = (Say("Nothing to keep."),)
    reviews: list[Heard] = field(default_factory=list)

    def __call__(self, heard: Heard) -> Step:
        began = next((n for n, m in enumerate(heard.messages) if m.role is Role.USER and OPENING in m.text), None)
        if began is None:
            return _nth(self.talk, heard, heard.turn)
        self.reviews.append(heard)
        spoken = sum(message.role is Role.ASSISTANT for message in heard.messages[began:])
        return _nth(self.raw if RAW in heard.messages[began].text else self.clean, heard, spoken)


def _nth(answers: Answers, heard: Heard, number: int) -> Step:
    if callable(answers):
        return answers(heard)
    return answers[number] if number < len(answers) else Say("Done.")


def rounds(*commands: str) -> list[Step]:
    """A task of that many rounds of tools, then the reply."""
    return [*(Call("terminal", {"command": command}) for command in commands), Say("It is done.")]


def looks(count: int) -> list[Step]:
    """So many rounds of a tool that answers with the person's own words alone, then the reply."""
    return [*(Call("skills_list", {"query": f"word{number}"}) for number in range(count)), Say("It is done.")]


def skill(name: str, *lines: str, description: str = "How to do what this test does, for later.") -> Piece:
    """A review's call that makes a skill."""
    text = "\n".join(lines)
    content = f"---\nname: {name}\ndescription: {description}\n---\n\n{text}\n"
    return Call("skill_manage", {"action": "create", "name": name, "content": content})


def note(text: str, target: str = "memory") -> Piece:
    """A review's call that notes something."""
    return Call("memory", {"target": target, "action": "add", "content": text})


SOON = "skills:\n  creation_nudge_interval: 3\nmemory:\n  nudge_interval: 2\n"


@asynccontextmanager
async def learning_place(
    folder: Path, script: Script, *, more: str = SOON, works: bool = False, options: Options | None = None
) -> AsyncIterator[Place]:
    """A system that reviews when `reviewed` is called, or by itself where it `works`."""
    options = options or Options(reviews=works)
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240 - a folder of a test
    async with place(folder, script, options, more=more) as here:
        yield here


async def reviewed(here: Place) -> list[Job]:
    """The jobs after everything in line was done, the newest first."""
    await here.runtime.learner.run()
    return await here.runtime.store.learning.list()


def asked(here: Place, *, review: bool) -> list[Exchange]:
    """The questions of the conversation, or of the reviews."""
    return [each for each in here.server.exchanges if each.heard is not None and is_review(each.heard) is review]


def is_review(heard: Heard) -> bool:
    return any(message.role is Role.USER and OPENING in message.text for message in heard.messages)
