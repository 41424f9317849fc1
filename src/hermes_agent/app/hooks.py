"""User-defined hooks: programs run on events (messages, runs, tool calls, replies, ...) after the owner's consent."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.agent.agent import Proposed
from hermes_agent.agent.session import Session as View
from hermes_agent.app.settings import HookSettings
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError, HermesError, Refused
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.mandate import Work
from hermes_agent.core.messages import Origin, Quoted, Text
from hermes_agent.core.tool import Answer
from hermes_agent.host.paths import read_small, write_private
from hermes_agent.host.process import open_piped
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.store.sessions import Session

LARGEST_SCRIPT = 1 << 20
LONGEST_NAME = 1000
WORDS = re.compile(r"(?P<written>>\s*[\"']?)?(?P<word>[^\s\"'`;|&<>(){}$=,]+)")
"""What may name a file anywhere in a command, also within quotes of its own; `written` where it is written to."""
PROGRAMS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua", ".awk", ".jq")
FOLDER = re.compile(r"\$(?:(?P<bare>HERMES_HOME|PWD|HOME)\b|\{(?P<braced>HERMES_HOME|PWD|HOME)\})")


class Consents:
    """File of the hooks that the owner allowed, by name and hash. A damaged file allows no hook."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def has(self, name: str, mark: str) -> bool:
        """Whether the hook of that name is allowed in its present form."""
        return self._read().get(name) == mark

    def give(self, name: str, mark: str) -> None:
        """Allow the hook in its present form. Raises `HomeError`."""
        self._write({**self._read(), name: mark})

    def take_back(self, name: str) -> bool:
        """Revoke the consent; False if there was none."""
        known = self._read()
        if known.pop(name, None) is None:
            return False
        self._write(known)
        return True

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(read_small(self._file) or b"{}")
        except ValueError:
            return {}
        return {str(name): str(mark) for name, mark in found.items()} if isinstance(found, dict) else {}

    def _write(self, known: dict[str, str]) -> None:
        write_private(self._file, json.dumps(known, indent=1, sort_keys=True).encode())


def mark_of(hook: HookSettings, root: Path) -> str:
    """Hash of everything that decides what a hook does: its settings and the files it names. Raises `ConfigError` if
    its file is missing."""
    facts = [repr((hook.on, hook.command, hook.python, hook.tools)).encode()]
    for path in files_of(hook, root):
        content = read_small(path, LARGEST_SCRIPT)
        if content is None:
            raise ConfigError(f"{path} is not there.")
        facts.append(content)
    return hashlib.sha256(b"\0".join(hashlib.sha256(fact).digest() for fact in facts)).hexdigest()


def files_of(hook: HookSettings, root: Path) -> list[Path]:
    """The files that belong to a hook and are hashed: its Python file, or the programs and paths its command names.
    Files it only writes to are excluded."""
    if hook.python:
        return [resolved(hook.python, root)]
    command = FOLDER.sub(lambda it: str(Path.home() if "HOME" in (it["bare"], it["braced"]) else root), hook.command)
    words = [each["word"] for each in WORDS.finditer(command) if not each["written"]] + _shell_words(command)
    named = {word: resolved(word, root) for word in words if len(word) < LONGEST_NAME}
    files = {word: path for word, path in named.items() if path.is_file()}
    return [path for word, path in files.items() if "/" in word or path.suffix in PROGRAMS or os.access(path, os.X_OK)]


def _shell_words(command: str) -> list[str]:
    """The words as a shell splits them, without redirection targets; none if a quote is unclosed."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    return [word for before, word in zip(["", *words], words, strict=False) if not before.endswith(">")]


def resolved(name: str, root: Path) -> Path:
    """Resolve a path of a hook's settings: relative to the home, unless absolute."""
    return root / Path(name).expanduser()


BLOCKS = 2
"""The exit code with which a hook says no; what it wrote to its other output is the reason."""
LONGEST = 100_000
LONGEST_REASON = 2000
"""Characters of why a hook says no: people and models read it."""
IN_HOME = 'cd "$0" || exit 1'
RUNNER = """
import asyncio, importlib.util, inspect, json, sys
spec = importlib.util.spec_from_file_location("hook", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
out, sys.stdout = sys.stdout, sys.stderr
answer = module.handle(json.load(sys.stdin))
if inspect.isawaitable(answer):
    async def wait():
        return await answer
    answer = asyncio.run(wait())
json.dump(answer, out)
"""


class HookFailed(HermesError):
    """A user-defined hook could not be started, timed out or exited with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Decision of a user-defined hook: a reason to block (empty: none), context to add, a replacement text."""

    block: str = ""
    context: str = ""
    text: str | None = None


class _Answer(msgspec.Struct):
    block: str | bool = ""
    decision: str = ""
    reason: str = ""
    context: str = ""
    text: str | None = None


async def run_hook(hook: HookSettings, event: Mapping[str, Any], root: Path, variables: Mapping[str, str]) -> Verdict:
    """Run a hook for an event and parse its answer. Raises `HookFailed`."""
    if hook.python:
        argv = [sys.executable, "-I", "-c", RUNNER, str(resolved(hook.python, root))]
    else:
        argv = ["/bin/sh", "-c", f"{IN_HOME}\n{hook.command}", str(root)]
    try:
        running = await open_piped(argv, env=variables, data=json.dumps(event).encode())
    except OSError as error:
        raise HookFailed(f"it cannot be started ({error.strerror})") from error
    try:
        async with asyncio.timeout(hook.seconds):
            out, errors, code = await running.collect(LONGEST)
    except TimeoutError as error:
        raise HookFailed(f"it took more than {hook.seconds:g} s") from error
    finally:
        await running.close()
    said = errors.decode("utf-8", "replace").strip()
    if code == BLOCKS:
        return Verdict(block=said[:LONGEST_REASON] or "A hook said no.")
    if code:
        raise HookFailed(f"it ended with {code}: {said[-500:]}")
    return _verdict(out)


def _verdict(out: bytes) -> Verdict:
    """Parse an answer in JSON; other output is ignored."""
    with suppress(msgspec.DecodeError, RecursionError):
        answer = msgspec.json.decode(out, type=_Answer)
        blocks = bool(answer.block) or answer.decision in ("block", "deny")
        reason = answer.reason or (answer.block if isinstance(answer.block, str) else "") or "A hook said no."
        return Verdict(block=reason if blocks else "", context=answer.context, text=answer.text)
    return Verdict()


log = logging.getLogger(__name__)

SAID = Origin.TOOL
"""The label of what a hook says: its program runs outside the wall, so nobody knows whom it reached."""
CONSENTS = "hooks-allowed.json"
EVENTS = frozenset(
    (
        *("gateway:start", "message:received", "run:start", "run:end", "tool:before", "tool:after", "reply:before"),
        *("child:start", "child:end"),
    )
)
HINT = "A hook of the person's decides this. Find another way, or say in your reply what you would need."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A configured hook, its hash, and whether that is allowed; `problem`: why it cannot run as configured."""

    name: str
    hook: HookSettings
    mark: str = ""
    allowed: bool = False
    problem: str = ""


def known_hooks(settings: Mapping[str, HookSettings], root: Path) -> list[Known]:
    """All configured hooks with their current state. Blocking: reads their files."""
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
    """Raise `ConfigError` for invalid hook settings."""
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
    """Fires events to the user-defined hooks, one hook after another. Each hook is checked before each use: one that
    changed since it was allowed does not run."""

    def __init__(self, settings: Mapping[str, HookSettings], root: Path, variables: Mapping[str, str]) -> None:
        self._settings = settings
        self._root = root
        self._variables = variables
        self._told: set[str] = set()
        self._under_way: set[asyncio.Task[Verdict]] = set()

    def waits_for(self, event: str) -> bool:
        """Whether any hook is configured for an event."""
        return any(event in hook.on for hook in self._settings.values())

    def around_calls(self) -> tuple[AroundCalls, ...]:
        """The tool-call hook; empty if no hook listens to tool calls."""
        return (AroundCalls(hooks=self),) if self.waits_for("tool:before") or self.waits_for("tool:after") else ()

    async def fire(self, event: str, facts: Mapping[str, Any], *, tool: str = "", strict: bool = False) -> Verdict:
        """Run all hooks of an event and merge their answers. With `strict` a failed hook blocks."""
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
        """Filter an inbound message through `message:received`. Raises `HermesError` if a hook blocks it."""
        facts = {"platform": inbound.conversation.platform, "principal": inbound.principal.key, "text": inbound.text}
        verdict = await self.fire("message:received", facts)
        if verdict.block:
            raise HermesError(verdict.block)
        if not verdict.context:
            return inbound
        added = Text(text=f"\n\n[hook: {verdict.context}]", origin=SAID)
        return replace(inbound, parts=(*inbound.parts, added))

    async def reply(self, session: str, ended: RunEnded) -> RunEnded:
        """The run's end with the reply as hooks of `reply:before` changed it."""
        if ended.outcome is not Outcome.ANSWERED:
            return ended
        verdict = await self.fire("reply:before", {"session": session, "text": ended.text})
        text = ended.text if verdict.text is None else verdict.text
        return replace(ended, text=verdict.block or text)

    def begun(self, record: Session) -> None:
        """Fire `run:start` in the background, for an agent of an agent `child:start` too."""
        self._beside("run:start", {"session": record.id})
        if record.surface == Work.CHILD:
            self._beside("child:start", {"session": record.id, "parent": Conversation.parse(record.conversation).chat})

    def over(self, record: Session, _: View, ended: RunEnded) -> None:
        """Fire `run:end` in the background, for an agent of an agent `child:end` too."""
        facts = {"session": record.id, "outcome": ended.outcome.value, "turns": ended.turns, "text": ended.text}
        self._beside("run:end", facts)
        if record.surface == Work.CHILD:
            self._beside("child:end", {**facts, "parent": Conversation.parse(record.conversation).chat})

    def _beside(self, event: str, facts: Mapping[str, Any]) -> None:
        if self.waits_for(event):
            task = spawn(self.fire(event, facts), name=f"hooks of {event}")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """Wait for all hooks fired in the background; each has its timeout."""
        while self._under_way:
            await asyncio.wait(self._under_way)


def hooks_of(settings: Mapping[str, HookSettings], root: Path, variables: Mapping[str, str]) -> Hooks:
    """Factory of a home's hooks; their environment has no secrets."""
    return Hooks(settings, root, {**scrubbed(variables), "HERMES_HOME": str(root)})


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundCalls:
    """Tool-call hook that fires the events `tool:before` and `tool:after` to the user-defined hooks."""

    hooks: Hooks

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `Refused` if a hook blocks the call or fails."""
        verdict = await self.hooks.fire("tool:before", _facts(proposed), tool=proposed.tool.schema.name, strict=True)
        if verdict.block:
            raise Refused("A hook refused this call:", hint=HINT, quoted=Quoted(text=verdict.block, origin=SAID))

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, with the context that hooks add."""
        said = "".join(part.text for part in answer.parts if isinstance(part, Text))
        facts = {**_facts(proposed), "text": said, "is_error": answer.is_error}
        verdict = await self.hooks.fire("tool:after", facts, tool=proposed.tool.schema.name)
        words = verdict.context or verdict.block
        if not words:
            return answer
        return replace(answer, parts=(*answer.parts, Text(text=f"\n[hook: {words}]", origin=SAID)))


def _facts(proposed: Proposed) -> dict[str, Any]:
    context = proposed.context
    return {
        "session": context.session,
        "workspace": context.workspace,
        "principal": context.speaker,
        "tool": proposed.tool.schema.name,
        "arguments": dict(proposed.arguments),
    }
