"""A house whose agent keeps its conversation within a window that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.compaction.compactor import Compactor
from hermes_agent.agent.compaction.shorten import Shortener
from hermes_agent.agent.prompt import Tail
from hermes_agent.agent.settings import CompactionSettings
from hermes_agent.core.errors import ContextTooLong
from hermes_agent.core.messages import ModelRequest
from hermes_agent.providers.demo.script import Heard
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, tool

LINE = "A line of a file that was read. " * 40


class Window(ScriptedModel):
    """A scripted model with a small window, which writes summaries too and remembers what it was asked."""

    def __init__(self, script: Callable[[Heard], object], *, window: int = 4000, refuses: int = 0) -> None:
        super().__init__(script)
        self._window = window
        self.refuses = refuses
        self.requests: list[ModelRequest] = []

    @property
    def window(self) -> int:
        return self._window

    async def ask(self, request: ModelRequest):
        self.requests.append(request)
        if request.purpose == "chat" and self.refuses:
            self.refuses -= 1
            raise ContextTooLong("too long")
        async for item in super().ask(request):
            yield item


class Small(Harness):
    """A house whose agent compacts."""

    writers: tuple[ScriptedModel, ...] = ()
    seconds = 5.0
    compaction = CompactionSettings()

    async def agent(self, record, journal) -> Agent:
        agent = await super().agent(record, journal)
        tail = Tail([], self.ids)

        async def writers() -> tuple[ScriptedModel, ...]:
            return self.writers or (self.model,)

        def shortener() -> Shortener:
            return Shortener(
                seconds=self.seconds,
                writers=writers,
                tail=tail,
                deadline=None,
                ids=self.ids,
                redact=lambda text: text.replace("s3cret", "[redacted]"),
            )

        compactor = Compactor(settings=self.compaction, shortener=shortener)
        return Agent(
            **{name: getattr(agent, name) for name in ("model", "tools", "prompt", "budget", "clock", "ids", "hooks")},
            tail=tail,
            compactor=compactor,
        )


def small(path: Path, script, *, window: int = 4000, refuses: int = 0, writers=()) -> Small:
    harness = Small(path, Window(script, window=window, refuses=refuses), tools=(tool("read", LINE),))
    harness.writers = writers
    return harness
