"""Scheduled jobs on a whole system: a job that is due becomes a session, a result and a letter."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService, InstantFacts
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.core.outbound import SlotState
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.store.work.cron.records import Job
from hermes_agent.testing.scripted import Script
from tests.app.place import Place, place

SERVES = Options(queue=SERVED, own_only=False)
CHANNEL = """
gateway:
  channels:
    ntfy:
      enabled: true
      owners: [ann]
      home: news
      options: {server: "http://127.0.0.1:9", topics: news}
"""
OWNER = Principal(platform="ntfy", user="ann", standing=Standing.OWNER)


@dataclass
class Cron:
    """A system that serves, with a person who has jobs."""

    place: Place
    who: Principal
    heard: list[Heard] = field(default_factory=list)

    @property
    def service(self) -> CronService:
        system = self.place.runtime
        return CronService(store=system.store, clock=system.machine, settings=system.settings, home=system.home)

    async def make(self, schedule: str, prompt: str = "Say something.", **more: object) -> Job:
        draft = Draft(schedule=schedule, prompt=prompt, name="job", **more)  # type: ignore[arg-type]
        return await self.service.create(self.who, draft, "ntfy:group:news")

    async def run(self, job: Job) -> InstantFacts:
        """Run it now, and wait for the end."""
        await self.service.run_now(self.who, job.id)
        return await self.ended(job)

    async def ended(self, job: Job, count: int = 1) -> InstantFacts:
        async with asyncio.timeout(20):
            while True:
                found = await self.place.runtime.store.cron_instants.of(job.id)
                over = [each for each in found if each.ended is not None]
                if len(over) >= count:
                    return await self.service.instant(over[0])
                await asyncio.sleep(0.02)

    async def letters(self) -> list[str]:
        store = self.place.runtime.store
        slots = [await store.outbox.get(number) for number in range(1, 10)]
        return [f"{slot.to.key}: {slot.content.text}" for slot in slots if slot is not None]


@asynccontextmanager
async def cron(folder: Path, script: Script | Callable[[Heard], Say], more: str = CHANNEL) -> AsyncIterator[Cron]:
    async with place(folder, script, SERVES, more=more) as here:
        yield Cron(place=here, who=OWNER)


async def test_a_job_that_is_due_becomes_a_session_a_result_and_a_letter(tmp_path: Path):
    async with cron(tmp_path, [Say("It is sunny.")]) as here:
        job = await here.make("@daily", "How is the weather?")
        found = await here.run(job)
        assert (found.state, found.words, found.delivery) == ("ran", "It is sunny.", SlotState.PENDING.value)
        assert await here.letters() == ["ntfy:group:news: job:\n\nIt is sunny."]
        view = await here.place.runtime.hermes.view(found.session)
        assert [message.text for message in view.messages if not message.is_runtime] == [
            "How is the weather?",
            "It is sunny.",
        ]
        facts = await here.service.facts(job)
        assert len(facts.next) == 3
        files = list((here.place.runtime.home.root / "cron" / "output" / job.id).glob("*.md"))
        assert "It is sunny." in files[0].read_text()


async def test_a_time_that_comes_fires_its_job_once(tmp_path: Path):
    async with cron(tmp_path, [Say("Tea."), Say("Never.")]) as here:
        job = await here.make("in 1s", "Remind me of tea.")
        found = await here.ended(job)
        assert (found.state, found.words) == ("ran", "Tea.")
        assert (await here.service.find(here.who, "job")).state.value == "done"
        assert await here.letters() == ["ntfy:group:news: job:\n\nTea."]
