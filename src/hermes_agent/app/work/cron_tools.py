"""Tool `cronjob`: scheduled jobs for the agent, which asks a person first where something from outside is in view."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from hermes_agent.app.settings import Settings
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService, job_line, job_text, run_line
from hermes_agent.core.chat import Conversation, Principal, Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.mandate import Work
from hermes_agent.core.messages import Origin, Text, Trust
from hermes_agent.core.tool import Answer, CallContext, Question, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.records import Job
from hermes_agent.work.cron.schedule import upcoming, words

Action = Literal["create", "list", "show", "runs", "edit", "pause", "resume", "run", "remove"]
YES = ("once", "yes", "y")
MOST_RUNS = 20


ACTS = {"pause": CronService.pause, "resume": CronService.resume, "run": CronService.run_now}


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
        record = await service.store.sessions.get(context.session)
        if record is not None and record.surface not in set(Work):
            service = replace(service, where=Conversation.parse(record.conversation))
        if action in ("list", "show", "runs"):
            return _told(await _read(service, who, action, job), Origin.TOOL)
        if record is None or record.surface in set(Work):
            raise ToolError("Only a conversation with a person makes or changes jobs.")
        draft = Draft(schedule=schedule or None, prompt=prompt or None, deliver=deliver or None)
        if action == "create":
            named, where = {**draft, "name": job or None}, record.conversation
            await _ask(context, *_shown(await service.drafted(who, named, where, "agent"), service))
            found = await service.create(who, named, where, "agent")
        elif action == "edit":
            there, author = await service.find(who, job), "agent" if prompt else ""
            await _ask(context, *_shown(await service.changed(who, there, draft, author), service))
            found = await service.edit(who, there.id, draft, author)
        else:
            there = await service.find(who, job)
            await _ask(context, f"May I {action} the scheduled job {there.name}? Something from outside is in view.")
            if action == "remove":
                return _told(f"{(await service.remove(who, job)).name} is removed.", Origin.RUNTIME)
            found = await ACTS[action](service, who, job)
        return _told(job_text(await service.facts(found, await service.served())), Origin.RUNTIME)

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
    return "\n".join(map(run_line, await service.runs(job, MOST_RUNS))) or "It has not run yet."


def _shown(job: Job, service: CronService) -> list[str]:
    plan, times = job.plan, ", ".join(upcoming(job.plan.schedule, service.clock.now()))
    lines = ["May I schedule this? Something from outside is in view.", f"{job.name}: {words(plan.schedule)}"]
    return [*lines, f"Next: {times}", f"Delivers to: {', '.join(plan.deliver)}", plan.prompt]


async def _ask(context: CallContext, *lines: str) -> None:
    """Ask a person for what something from outside may have led to. Raises `Refused` for a no."""
    if context.trust is Trust.CLEAN:
        return
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
