"""Tool `cronjob`: scheduled jobs for the agent, which asks a person first where something from outside is in view."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal

from hermes_agent.app.settings import Settings
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_facts import job_line, job_text, run_line
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.core.chat import Principal, Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.mandate import Work
from hermes_agent.core.messages import Origin, Text, Trust
from hermes_agent.core.tool import Answer, CallContext, Question, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.records import Plan
from hermes_agent.work.cron.schedule import upcoming, words

Action = Literal["create", "list", "show", "runs", "edit", "pause", "resume", "run", "remove"]
YES = ("once", "yes", "y")
MOST_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a call says of a job."""

    job: str
    draft: Draft


class CronTools:
    """The toolset `cron`."""

    def __init__(self, service: Callable[[], CronService], standings: Standings) -> None:
        self._service, self._standings = service, standings

    @tool(
        effect=Effect.KEYED,
        needs=(Capability.SCHEDULE,),
        reads_when="action=list|show|runs",
        origin=Origin.RUNTIME,
    )
    async def cronjob(
        self,
        action: Action,
        context: CallContext,
        job: str = "",
        schedule: str = "",
        prompt: str = "",
        deliver: str = "",
    ) -> Answer:
        """Scheduled jobs and reminders of this person.

        Args:
            job: name or id
            schedule: `0 9 * * 1-5`, `every 90m`, `in 20m` or a time
            prompt: what to do then, complete in itself
            deliver: origin, local, all or CHANNEL:CHAT
        """
        service, who = self._service(), self._who(context)
        if action in ("list", "show", "runs"):
            return _told(await _read(service, who, action, job), Origin.TOOL)
        record = await service.store.sessions.get(context.session)
        if record is None or record.surface in set(Work):
            raise ToolError("Only a conversation with a person makes or changes jobs.")
        draft = Draft(schedule=schedule or None, prompt=prompt or None, name=job or None, deliver=deliver or None)
        said = Said(job=job, draft=draft)
        return _told(await self._change(service, who, action, said, context, record.conversation), Origin.RUNTIME)

    async def _change(
        self, service: CronService, who: Principal, action: Action, said: Said, context: CallContext, where: str
    ) -> str:
        match action:
            case "create":
                made = await service.drafted(who, said.draft, where, "agent")
                await _ask(context, made.name, made.plan, service)
                found = await service.create(who, said.draft, where, "agent")
            case "edit":
                there = await service.find(who, said.job)
                changed = Draft(schedule=said.draft.schedule, prompt=said.draft.prompt, deliver=said.draft.deliver)
                made = await service.changed(who, there, changed, "agent" if said.draft.prompt else "")
                await _ask(context, made.name, made.plan, service)
                found = await service.edit(who, there.id, changed, "agent" if said.draft.prompt else "")
            case "pause":
                found = await service.pause(who, said.job)
            case "resume":
                found = await service.resume(who, said.job)
            case "run":
                found = await service.run_now(who, said.job)
            case _:
                return f"{(await service.remove(who, said.job)).name} is removed."
        return job_text(await service.facts(found, await service.served()))

    def _who(self, context: CallContext) -> Principal:
        if not context.speaker:
            raise ToolError("Several people spoke: the one whose job it is has to say so in a message of their own.")
        return self._standings.principal(context.speaker)


async def _read(service: CronService, who: Principal, action: Action, name: str) -> str:
    if action == "list":
        lines = [job_line(await service.facts(job)) for job in await service.all(who)]
        return "\n".join(lines) or "There are no jobs."
    job = await service.find(who, name)
    if action == "show":
        return f"{job_text(await service.facts(job))}\nPrompt: {job.plan.prompt}"
    runs = await service.store.cron_instants.of(job.id, MOST_RUNS)
    return "\n".join([run_line(await service.instant(each)) for each in runs]) or "It has not run yet."


async def _ask(context: CallContext, name: str, plan: Plan, service: CronService) -> None:
    """Ask a person for a job that something from outside may have led to. Raises `Refused` for a no."""
    if context.trust is Trust.CLEAN:
        return
    times = ", ".join(upcoming(plan.schedule, service.clock.now()))
    lines = ["May I schedule this? Something from outside is in view.", f"{name}: {words(plan.schedule)}"]
    lines += [f"Next: {times}", f"Delivers to: {', '.join(plan.deliver)}", plan.prompt]
    text = "\n".join(lines)
    about = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    answer = await context.ask(Question(text=text, about=about, choices=("once", "deny"), purpose="approval"))
    if answer.strip().lower() not in YES:
        raise Refused("The person did not agree to that job.")


def _told(text: str, origin: Origin) -> Answer:
    return Answer(parts=(Text(text=text, origin=origin),))


def cron_tools(needs: Needs) -> CronTools:
    """Factory of the toolset `cron`."""

    def service() -> CronService:
        store, clock = needs.get(Store), needs.get(Clock)
        return CronService(store=store, clock=clock, settings=needs.get(Settings), home=needs.get(Home))

    return CronTools(service, needs.get(Standings))
