"""The hooks of one process: which there are, which were allowed, and how an event reaches them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_agent.agent.hooks import Proposed
from hermes_agent.agent.session import Session as View
from hermes_agent.app.hooks.consent import Consents, mark_of
from hermes_agent.app.hooks.hook_process import HookFailed, Verdict, run_hook
from hermes_agent.app.hooks.settings import HookSettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError, HermesError, Refused
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.environment import scrubbed
from hermes_agent.store.sessions import Session

log = logging.getLogger(__name__)

CONSENTS = "hooks-allowed.json"
EVENTS = frozenset(
    {"gateway:start", "message:received", "run:start", "run:end", "tool:before", "tool:after", "reply:before"}
)
HINT = "A hook of the person's decides this. Find another way, or say in your reply what you would need."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One hook: its name, what it is, the hash of that, and whether just that was allowed; `problem` says why it can
    never run."""

    name: str
    hook: HookSettings
    mark: str = ""
    allowed: bool = False
    problem: str = ""


def known_hooks(settings: Mapping[str, HookSettings], root: Path) -> list[Known]:
    """Every hook of the settings, as it stands. Blocking: reads its files."""
    consents = Consents(root / CONSENTS)
    return [_known(name, hook, root, consents) for name, hook in settings.items()]


def _known(name: str, hook: HookSettings, root: Path, consents: Consents) -> Known:
    try:
        check(name, hook)
        mark = mark_of(hook, root)
    except HermesError as error:
        return Known(name=name, hook=hook, problem=str(error))
    return Known(name=name, hook=hook, mark=mark, allowed=consents.has(name, mark))


def check(name: str, hook: HookSettings) -> None:
    """Raise `ConfigError` for a hook that could never run."""
    unknown = sorted(set(hook.on) - EVENTS)
    if unknown or not hook.on:
        raise ConfigError(f"hooks.{name}.on: `{', '.join(unknown)}` is none of {', '.join(sorted(EVENTS))}.")
    if bool(hook.command) == bool(hook.python):
        raise ConfigError(f"hooks.{name}: say what is run, as `command` or as `python`.")
    try:
        re.compile(hook.tools)
    except re.error as error:
        raise ConfigError(f"hooks.{name}.tools: not a regular expression ({error}).") from error


class Hooks:
    """Tells hooks of events, those of one event after another. A hook that was not allowed as it stands is not run;
    it is looked at again before each use, so that what was changed has to be allowed anew."""

    def __init__(self, settings: Mapping[str, HookSettings], root: Path, variables: Mapping[str, str]) -> None:
        self._settings = settings
        self._root = root
        self._variables = variables
        self._told: set[str] = set()
        self._under_way: set[asyncio.Task[Verdict]] = set()

    def waits_for(self, event: str) -> bool:
        """Whether any hook is there for an event."""
        return any(event in hook.on for hook in self._settings.values())

    def around_calls(self) -> tuple[AroundCalls, ...]:
        """What stands around each tool call; nothing where no hook waits for one."""
        return (AroundCalls(hooks=self),) if self.waits_for("tool:before") or self.waits_for("tool:after") else ()

    async def fire(self, event: str, facts: Mapping[str, Any], *, tool: str = "", strict: bool = False) -> Verdict:
        """Tell the hooks of an event; their answers together. With `strict` a hook that fails says no."""
        found = Verdict()
        for name, hook in self._settings.items():
            if event not in hook.on or (tool and not re.fullmatch(hook.tools, tool)):
                continue
            verdict = await self._one(name, hook, {"event": event, **facts}, strict=strict)
            context = "\n".join(filter(None, (found.context, verdict.context)))
            text = found.text if verdict.text is None else verdict.text
            found = Verdict(block=verdict.block, context=context, text=text)
            if verdict.text is not None:
                facts = {**facts, "text": verdict.text}
            if found.block:
                break
        return found

    async def _one(self, name: str, hook: HookSettings, event: Mapping[str, Any], *, strict: bool) -> Verdict:
        known = _known(name, hook, self._root, Consents(self._root / CONSENTS))
        if not known.allowed:
            why = known.problem or f"it waits for your consent: `hermes hooks allow {name}`"
            if known.mark not in self._told:
                self._told.add(known.mark)
                log.warning("the hook %s is not run: %s", name, why)
            return Verdict()
        try:
            return await run_hook(hook, event, self._root, self._variables)
        except HookFailed as error:
            log.warning("the hook %s failed: %s", name, error)
            return Verdict(block=f"The hook {name} failed: {error}.") if strict else Verdict()

    async def received(self, inbound: Inbound) -> Inbound:
        """A message as the hooks let it in. Raises `HermesError` where one does not."""
        facts = {"platform": inbound.conversation.platform, "principal": inbound.principal.key, "text": inbound.text}
        verdict = await self.fire("message:received", facts)
        if verdict.block:
            raise HermesError(verdict.block)
        if not verdict.context:
            return inbound
        added = Text(text=f"\n\n[hook: {verdict.context}]", origin=Origin.RUNTIME)
        return replace(inbound, parts=(*inbound.parts, added))

    async def reply(self, session: str, ended: RunEnded) -> RunEnded:
        """The end of a run as it is kept and shown: its reply may be another text."""
        if ended.outcome is not Outcome.ANSWERED:
            return ended
        verdict = await self.fire("reply:before", {"session": session, "text": ended.text})
        text = ended.text if verdict.text is None else verdict.text
        return replace(ended, text=verdict.block or text)

    def begun(self, session: str) -> None:
        """Tell that a run began; nobody waits for what the hooks do."""
        self._beside("run:start", {"session": session})

    def over(self, record: Session, _: View, ended: RunEnded) -> None:
        """Tell that a run ended; nobody waits for what the hooks do."""
        facts = {"outcome": ended.outcome.value, "turns": ended.turns, "text": ended.text}
        self._beside("run:end", {"session": record.id, **facts})

    def _beside(self, event: str, facts: Mapping[str, Any]) -> None:
        if self.waits_for(event):
            task = spawn(self.fire(event, facts), name=f"hooks of {event}")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """Return when all that was told has been heard; each hook has its time."""
        while self._under_way:
            await asyncio.wait(self._under_way)


def hooks_of(settings: Mapping[str, HookSettings], root: Path, variables: Mapping[str, str]) -> Hooks:
    """The hooks of a home; they see the environment without its secrets."""
    return Hooks(settings, root, {**scrubbed(variables), "HERMES_HOME": str(root)})


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundCalls:
    """The hooks around each tool call of a run."""

    hooks: Hooks

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `Refused` where a hook says no, or fails."""
        verdict = await self.hooks.fire("tool:before", _facts(proposed), tool=proposed.tool.schema.name, strict=True)
        if verdict.block:
            raise Refused(verdict.block, hint=HINT)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, with what hooks add to it."""
        said = "".join(part.text for part in answer.parts if isinstance(part, Text))
        facts = {**_facts(proposed), "text": said, "is_error": answer.is_error}
        verdict = await self.hooks.fire("tool:after", facts, tool=proposed.tool.schema.name)
        words = verdict.context or verdict.block
        if not words:
            return answer
        return replace(answer, parts=(*answer.parts, Text(text=f"\n[hook: {words}]", origin=Origin.RUNTIME)))


def _facts(proposed: Proposed) -> dict[str, Any]:
    context = proposed.context
    return {
        "session": context.session,
        "workspace": context.workspace,
        "principal": context.speaker,
        "tool": proposed.tool.schema.name,
        "arguments": dict(proposed.arguments),
    }
