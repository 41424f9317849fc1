"""Scheduled jobs on a whole system: a job that is due becomes a session, a result and a letter."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService, InstantFacts, outcome
from hermes_agent.core.chat import Piece, Principal, SlotState, Standing
from hermes_agent.host.secrets import open_secrets
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.records import Job
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.testing.scripted import Script
from tests.app.place import Place, another, place, settle_home

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
        draft = Draft(schedule=schedule, prompt=prompt, **{"name": "job", **more})  # type: ignore[arg-type]  # what a test gives
        return await self.service.create(self.who, draft, "ntfy:group:news")

    async def run(self, job: Job) -> InstantFacts:
        """Run it now, and wait for the end."""
        before = await self.place.runtime.store.cron_instants.of(job.id)
        await self.service.run_now(self.who, job.id)
        return await self.ended(job, sum(each.ended is not None for each in before) + 1)

    async def ended(self, job: Job, count: int = 1) -> InstantFacts:
        async with asyncio.timeout(20):
            while True:
                found = await self.place.runtime.store.cron_instants.of(job.id)
                over = [each for each in found if each.ended is not None]
                if len(over) >= count:
                    (facts,) = [each for each in await self.service.runs(job, 20) if each.id == over[0].id]
                    return facts
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


async def there(path: Path) -> None:
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(path.exists):
            await asyncio.sleep(0.02)


def script(here: Cron, name: str, text: str) -> None:
    (folder := here.place.runtime.home.root / "scripts").mkdir(exist_ok=True)
    (folder / name).write_text(text)


async def test_a_scripts_output_stands_before_the_prompt_as_material(tmp_path: Path):
    heard, model = remembering(Say("Noted."))
    async with cron(tmp_path, model) as here:
        script(here, "price.sh", "echo 42 euros")
        job = await here.make("@daily", "Is it cheap?", script="price.sh")
        found = await here.run(job)
        assert (found.state, found.words) == ("ran", "Noted.")
        asked = heard[0].messages[-1].text
        assert asked.index("42 euros") < asked.index("Is it cheap?")


async def test_a_job_without_an_agent_delivers_its_scripts_output(tmp_path: Path):
    async with cron(tmp_path, []) as here:
        script(here, "price.py", "print('42 euros')")
        job = await here.make("@daily", "", script="price.py", agent=False)
        found = await here.run(job)
        assert (found.state, found.words, found.session) == ("ran", "42 euros", "")
        assert await here.letters() == ["ntfy:group:news: job:\n\n42 euros"]


async def test_a_gate_that_says_no_costs_nothing(tmp_path: Path):
    async with cron(tmp_path, [Say("Never.")]) as here:
        script(here, "no.sh", "exit 1")
        script(here, "wake.sh", "echo news; echo '{\"wakeAgent\": false}'")
        before = await here.place.runtime.store.sessions.list(limit=10)
        gated = await here.run(await here.make("@daily", gate="no.sh"))
        assert (gated.state, gated.why, gated.session) == ("skipped", "gate", "")
        job = await here.service.edit(here.who, "job", Draft(script="wake.sh", prompt="x", gate="", schedule="@daily"))
        assert job.plan.gate == ""
        asleep = await here.run(job)
        assert (asleep.state, asleep.why) == ("skipped", "gate")
        assert await here.letters() == []
        assert await here.place.runtime.store.sessions.list(limit=10) == before


async def test_nothing_to_say_is_no_letter_and_no_failure(tmp_path: Path):
    async with cron(tmp_path, [Say("[SILENT]")]) as here:
        found = await here.run(await here.make("@daily"))
        assert (found.state, found.why, found.delivery) == ("ran", "silent", "none")
        assert await here.letters() == []


async def test_a_failed_script_is_told_at_home_once(tmp_path: Path):
    async with cron(tmp_path, []) as here:
        script(here, "bad.sh", "echo no disk; exit 3")
        job = await here.make("@daily", "", script="bad.sh", agent=False, deliver="local")
        found = await here.run(job)
        assert (found.state, found.delivery) == ("failed", "pending")
        assert "ended with 3" in found.words
        async with asyncio.timeout(5):
            while (await here.service.find(here.who, job.id)).told == 0:
                await asyncio.sleep(0.02)
        await asyncio.sleep(1.1)  # The next second is another instant.
        await here.service.run_now(here.who, job.id)
        again = await here.ended(job, 2)
        assert (again.state, again.delivery) == ("failed", "none")
        (letter,) = await here.letters()
        assert letter.startswith("ntfy:dm:news: The scheduled job job failed")
        assert "no disk" in letter
        assert (await here.service.find(here.who, job.id)).state.value == "on"


async def test_a_job_whose_script_is_gone_is_broken_and_said(tmp_path: Path):
    async with cron(tmp_path, []) as here:
        script(here, "gone.sh", "true")
        job = await here.make("@daily", "", script="gone.sh", agent=False)
        (here.place.runtime.home.root / "scripts" / "gone.sh").unlink()
        found = await here.run(job)
        assert "There is no script" in found.words
        facts = await here.service.facts(await here.service.find(here.who, job.id))
        assert (facts.state, facts.next) == ("broken", ())
        assert "runs no more until you change it" in (await here.letters())[0]


@pytest.mark.slow
async def test_a_run_that_cannot_begin_fails_with_its_reason(tmp_path: Path):
    async with cron(tmp_path, []) as here:
        job = await here.make("@daily", model="openai/gpt-5")
        found = await here.run(job)
        assert found.state == "failed"
        assert "OPENAI_API_KEY" in found.words
        assert len(await here.letters()) == 1


async def test_a_job_of_a_person_who_was_removed_stops_with_a_word(tmp_path: Path):
    async with cron(tmp_path, [Say("Never.")]) as here:
        here.who = Principal(platform="ntfy", user="bob", standing=Standing.MEMBER)
        job = await here.make("@daily")
        found = await here.run(job)
        assert (found.state, found.session) == ("failed", "")
        owner = Principal(platform="ntfy", user="ann", standing=Standing.OWNER)
        there = await here.service.find(owner, job.id)
        assert (there.state.value, there.why) == (
            "paused",
            "ntfy:bob may not use this agent any more, so the job is paused.",
        )
        assert "may not use this agent any more" in (await here.letters())[0]


async def test_a_scheduled_session_has_no_tool_that_makes_jobs_or_sends(tmp_path: Path):
    heard: list[Heard] = []

    def model(said: Heard) -> Say | Call:
        heard.append(said)
        again = {"action": "create", "schedule": "in 1m", "prompt": "Remind me again."}
        return Call("cronjob", again) if len(heard) % 3 else Say("Remind me again in a minute.")

    async with cron(tmp_path, model) as here:
        job = await here.make("@daily", "Remind me again.")
        for _ in range(5):
            assert (await here.run(job)).state == "ran"
        names = {tool.name for tool in heard[0].tools}
        assert "todo" in names
        assert not names & {"cronjob", "send_file", "clarify"}
        assert len(await here.service.all(here.who)) == 1


async def test_an_instant_whose_job_still_runs_is_skipped(tmp_path: Path):
    async with cron(tmp_path, []) as here:
        script(here, "slow.sh", "sleep 2; echo done")
        job = await here.make("@daily", "", script="slow.sh", agent=False)
        await here.service.run_now(here.who, job.id)
        await asyncio.sleep(1.1)
        await here.service.run_now(here.who, job.id)
        await here.ended(job, 2)
        found = await here.place.runtime.store.cron_instants.of(job.id)
        over = [(each.state.value, each.why) for each in found if each.ended is not None]
        assert sorted(over) == [("ran", "manual"), ("skipped", "overlap")]


async def test_words_of_an_earlier_job_stand_before_the_prompt(tmp_path: Path):
    heard: list[Heard] = []

    def model(said: Heard) -> Say:
        heard.append(said)
        return Say("Rain.")

    async with cron(tmp_path, model) as here:
        await here.run(await here.make("@daily", "Weather?"))
        draft = Draft(schedule="@daily", prompt="Umbrella?", name="second", context_from="job", deliver="local")
        second = await here.service.create(here.who, draft)
        await here.run(second)
        assert "Rain." in heard[1].messages[-1].text


async def test_a_script_that_outlives_its_process_is_found_again_and_not_run_twice(tmp_path: Path):
    async with serving(openai_model([], keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, CHANNEL)
        async with another(home, server, SERVES) as first:
            here = Cron(place=first, who=OWNER)
            script(here, "once.sh", "echo begun >> began; sleep 1; echo done")
            job = await here.make("@daily", "", script="once.sh", agent=False)
            await here.service.run_now(here.who, job.id)
            began = home.root / "workspace" / "began"
            await there(began)
        async with another(home, server, SERVES) as second:
            found = await Cron(place=second, who=OWNER).ended(job)
            assert (found.state, found.words) == ("ran", "done")
            assert began.read_text() == "begun\n"


async def test_new_settings_take_over_what_is_under_way(tmp_path: Path):
    async with cron(tmp_path, []) as here:
        script(here, "once.sh", "echo begun >> began; sleep 1; echo done")
        job = await here.make("@daily", "", script="once.sh", agent=False)
        await here.service.run_now(here.who, job.id)
        began = here.place.runtime.home.root / "workspace" / "began"
        await there(began)
        system = here.place.runtime
        await system.snapshots.renew(system.loaded, open_secrets(system.home))
        found = await here.ended(job)
        assert (found.state, found.words) == ("ran", "done")
        assert began.read_text() == "begun\n"


async def test_a_provider_that_fails_for_a_while_is_asked_again_on_the_same_row(tmp_path: Path):
    async with cron(tmp_path, [Status(500)] * 20, f"  max_retries: 0\n{CHANNEL}") as here:
        job = await here.make("@daily")
        await here.service.run_now(here.who, job.id)
        async with asyncio.timeout(20):
            while not (found := await here.place.runtime.store.cron_instants.of(job.id)) or not found[0].tries:
                await asyncio.sleep(0.02)
        assert (found[0].state.value, found[0].session, found[0].ended) == ("queued", "", None)
        assert found[0].ready_at > here.place.runtime.machine.now() + 30
        assert await here.letters() == []


async def test_what_ran_is_not_delivered_until_its_channel_has_it_once(tmp_path: Path):
    async with cron(tmp_path, [Say("Hello.")]) as here:
        job, store = await here.make("@daily"), here.place.runtime.store
        await here.run(job)
        for _ in range(3):  # The channel is down.
            (slot,) = await store.outbox.claim(["ntfy"])
            await store.outbox.start(slot, [])
            await store.outbox.complete(slot, SlotState.PENDING, [], error="down")
            facts = await here.service.facts(job)
            assert facts.last is not None
            assert outcome(facts.last) == "ran, manual, not delivered yet"
        (slot,) = await store.outbox.claim(["ntfy"])
        await store.outbox.start(slot, [])
        await store.outbox.complete(slot, SlotState.SENT, [Piece(receipt="1", version=slot.version)])
        facts = await here.service.facts(job)
        assert facts.last is not None
        assert outcome(facts.last) == "ran, manual, delivered"
        assert await store.outbox.claim(["ntfy"]) == []


async def test_new_data_of_time_zones_plans_all_jobs_anew(tmp_path: Path):
    async with serving(openai_model([], keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, CHANNEL)
        async with another(home, server) as first:
            job = await Cron(place=first, who=OWNER).make("@yearly")
            await first.runtime.store.facts.set("cron", "zones", "data of before")
            await first.runtime.store.write(
                lambda tx: tx.run("UPDATE cron_job SET look_at = 9e9, planned_to = 1 WHERE id = $1", job.id)
            )
        async with another(home, server, SERVES) as second:
            await planned_anew(second.runtime.store, job)


async def planned_anew(store: Store, job: Job) -> None:
    async with asyncio.timeout(10):
        while (await store.facts.of("cron")).get("zones") == "data of before":
            await asyncio.sleep(0.02)
        while not await store.cron_jobs.waiting(job.id):
            await asyncio.sleep(0.02)


def remembering(*answers: Say | Status) -> tuple[list[Heard], Callable[[Heard], Say | Status]]:
    """A model that keeps what it heard, and its answers one by one."""
    heard, left = list[Heard](), list(answers)

    def model(said: Heard) -> Say | Status:
        heard.append(said)
        return left.pop(0)

    return heard, model


async def test_a_job_of_one_session_continues_it_and_each_time_has_its_own_result(tmp_path: Path):
    heard, model = remembering(Say("One."), Say("Two."), Say("Three."))
    async with cron(tmp_path, model) as here:
        job = await here.make("@daily", "Go on.", session="same")
        first, second = await here.run(job), await here.run(job)
        assert (first.words, second.words) == ("One.", "Two.")
        assert first.session == second.session
        assert "One." in [message.text for message in heard[1].messages]
        await here.service.edit(here.who, job.id, Draft(tokens=50_000))  # Another mandate: another session.
        third = await here.run(job)
        assert third.words == "Three."
        assert third.session != first.session


async def test_a_time_of_one_session_that_its_process_left_ends_by_its_own_run(tmp_path: Path):
    async with cron(tmp_path, [Say("One."), Say("Two."), Say("Three.")]) as here:
        job = await here.make("@daily", "Go on.", session="same")
        for _ in range(3):
            await here.run(job)
        store = here.place.runtime.store
        again = "UPDATE cron_instant SET ended = NULL, state = 'running' WHERE job = $1 AND words = 'Two.'"
        await store.write(lambda tx: tx.run(again, job.id))
        await here.service.run_now(here.who, (await here.make("in 1h", name="other")).id)  # Rings.
        async with asyncio.timeout(20):
            while len(found := [each for each in await store.cron_instants.of(job.id) if each.ended]) < 3:
                await asyncio.sleep(0.05)
        assert [each.words for each in reversed(found)] == ["One.", "Two.", "Three."]


async def test_a_long_prompt_is_a_file_where_the_job_works(tmp_path: Path):
    heard, model = remembering(Say("Read."))
    async with cron(tmp_path, model) as here:
        text = "Begin. " + "x" * 30_000
        job = await here.make("@daily", text)
        await here.run(job)
        said = heard[0].messages[-1].text
        assert said.startswith("Begin. x")
        assert f"All 30,007 characters are in the file cron-{job.id}.md here" in said
        assert [each.read_text() for each in here.place.runtime.home.root.rglob(f"cron-{job.id}.md")] == [text]
