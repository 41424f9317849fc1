"""A whole system on a temporary home, in front of a model server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hermes_agent.app.commands.command import Desk, Done, perform
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.core.chat import Busy, Conversation, Inbound
from hermes_agent.core.events import Entry, RunEnded, Seen
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.scripted import Script

PLACE = Conversation(platform="cli", chat_kind="folder", chat="here")


@dataclass
class Place:
    """One process's view: its runtime, the session it talks in, the server it asks."""

    runtime: System
    server: ModelServer
    record: SessionRecord
    number: int = field(default=0)

    def inbound(self, text: str, *, busy: Busy = Busy.STEER, answers: str = "", message_id: str = "") -> Inbound:
        return Inbound(
            source="cli",
            source_id=message_id or self.runtime.ids.short(),
            principal=self.runtime.owner,
            conversation=PLACE,
            parts=(Text(text=text, origin=Origin.OWNER),) if text else (),
            received=self.runtime.clock.now(),
            busy=busy,
            answers=answers,
        )

    async def type(self, line: str, *, busy: bool = False) -> Done | None:
        """A line as a person types it; the session that a command leads to is gone on with."""
        record = await self.runtime.hermes.record(self.record.id)
        done = await perform(Desk(runtime=self.runtime, record=record, inbound=self.inbound(line), busy=busy))
        if done is not None and done.session:
            self.record = await self.runtime.hermes.record(done.session)
        return done

    async def type_and_submit(self, line: str) -> None:
        """A command that leaves a message for the run under way."""
        done = await self.type(line, busy=True)
        assert done is not None
        assert done.submit is not None
        await self.runtime.hermes.submit(done.submit, self.record.id)

    async def text(self, line: str, *, busy: bool = False) -> str:
        done = await self.type(line, busy=busy)
        assert done is not None
        return done.text

    async def tell(self, said: str | Inbound) -> int:
        """Submit, without waiting; the number that the log stood at."""
        after = await self.runtime.store.history.last_number(self.record.id)
        await self.runtime.hermes.submit(self.inbound(said) if isinstance(said, str) else said, self.record.id)
        return after

    async def say(self, said: str | Inbound) -> RunEnded:
        """Submit, and wait for the end of the run."""
        return await self.ended(await self.tell(said))

    async def ended(self, after: int) -> RunEnded:
        seen = [each async for each in self.runtime.hermes.follow(self.record.id, after)]
        assert isinstance(seen[-1].event, RunEnded)
        return seen[-1].event

    async def until(self, kind: type, after: int = 0) -> Seen:
        async with aclosing(self.runtime.hermes.watch(self.record.id, after)) as events:
            async for seen in events:
                if isinstance(seen.event, kind):
                    return seen
        raise AssertionError("the events ended")

    async def log(self) -> list[Entry]:
        return await self.runtime.store.history.entries(self.record.id)

    async def transcript(self) -> list[str]:
        view = await self.runtime.hermes.view(self.record.id)
        said = [message for message in view.messages if message.text and not message.is_runtime]
        return [f"{message.role}: {message.text}" for message in said]


def settle_home(root: Path, url: str, more: str = "") -> Home:
    """A home whose configured model is the server at `url`."""
    home = Home(root=root, base=root)
    root.mkdir(exist_ok=True)
    home.config_file.write_text(f"model:\n  default: custom/m\n  base_url: {url}\n{more}")
    return home


@asynccontextmanager
async def another(home: Home, server: ModelServer, options: Options | None = None) -> AsyncIterator[Place]:
    """One more process on a home."""
    async with open_system(home, options) as runtime:
        workspace = home.root.parent / "work"
        workspace.mkdir(exist_ok=True)
        record = await runtime.hermes.open_session(PLACE, runtime.owner, workspace=str(workspace))
        yield Place(runtime=runtime, server=server, record=record)


@asynccontextmanager
async def place(
    folder: Path, script: Script, options: Options | None = None, *, more: str = ""
) -> AsyncIterator[Place]:
    """A home, a server and one process."""
    async with (
        serving(openai_model(script, keys=())) as server,
        another(settle_home(folder / "home", server.url, more), server, options) as found,
    ):
        yield found


def spoken(heard: Heard) -> int:
    """How often the model has spoken."""
    return sum(message.role == "assistant" for message in heard.messages)


def counting(heard: Heard) -> Say:
    """The script of a model that counts its replies."""
    return Say(f"Reply {spoken(heard) + 1}.")
