"""Delegation in the whole system: what a parent has, how a child's report is made, and the ends of both."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session as View
from hermes_agent.app.chats.people import People
from hermes_agent.app.intake import spool
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.tool_sources import Toolsets
from hermes_agent.app.work import DELEGATION, granted_by, mandate_of, queue_of, toolsets_by, work_part
from hermes_agent.core.chat import Principal, Standing, Standings, own_name
from hermes_agent.core.clock import Clock
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.messages import Origin, Quoted, Role
from hermes_agent.core.spending import Limit, Scope
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import PRIVATE_FOLDER, Home, environment
from hermes_agent.host.process import Child as Process, start_detached
from hermes_agent.host.tasks import spawn
from hermes_agent.replay.seam import Book
from hermes_agent.runs.front import Hermes
from hermes_agent.sandbox.place import Command, Place, begun, end_of_output
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.work.children import Child
from hermes_agent.tools.starting import exec_name
from hermes_agent.tools.surfaces import capabilities_of, rules_of
from hermes_agent.work.delegation.delegation import Delegation, Parent
from hermes_agent.work.delegation.report import (
    LOST,
    REMOVED,
    Artefact,
    Check,
    Made,
    Report,
    SpentBy,
    Step,
    calls_in,
    cut,
)
from hermes_agent.work.delegation.tools import DelegationTools, Means

log = logging.getLogger(__name__)
LOOK_SECONDS, LOOK_SECONDS_STOPPED = 10.0, 0.5
"""Seconds that the files and records of a child may take to read; the report does without what takes longer."""
LARGEST_HASHED = 1 << 30
GIT_SECONDS, MOST_OUTPUT = 60.0, 100_000
TERMINAL = "terminal"
NO_WORKTREE = "`isolation: worktree` needs a git repository with a commit and nothing under way in it. Git said:"
ADD = """\
top=$(git rev-parse --show-toplevel) || exit 1
git rev-parse --verify -q HEAD >/dev/null || { echo "it has no commit yet"; exit 1; }
for each in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD; do
  [ ! -e "$(git rev-parse --git-path $each)" ] || { echo "a rebase, merge or cherry-pick is under way"; exit 1; }
done
mkdir -p .hermes/worktrees && printf '*\\n' > .hermes/.gitignore
tree=.hermes/worktrees/NAME
[ -e $tree ] || git -c core.hooksPath=/dev/null worktree add -q -b hermes/NAME $tree HEAD || exit 1
below=$(git rev-parse --show-prefix) && mkdir -p "$tree/$below" && echo "BELOW $below"
git rev-parse HEAD
"""
LOOK = """\
cd "$FOLDER" 2>/dev/null && FOLDER=$(git rev-parse --show-toplevel) && cd "$FOLDER" || exit 0
git add -A -N . && git --no-pager diff --stat "$BASE"
[ -z "$(git status --porcelain)" ] && [ "$(git rev-parse HEAD)" = "$BASE" ] || exit 0
cd "$TOP" && git worktree remove "$FOLDER" && git branch -q -D "$BRANCH" && echo "$REMOVED"
"""


def delegation_of(needs: Needs) -> Delegation:
    """The delegation of these settings."""
    return Delegation(
        hermes=needs.get(Hermes),
        store=needs.get(Store),
        clock=needs.get(Clock),
        standings=needs.get(Standings),
        settings=needs.get(Settings).delegation,
        apart=OwnProcesses(needs),
    )


def delegation_tools(needs: Needs) -> DelegationTools:
    """Factory of the toolset `delegation`."""
    means = Means(
        parent_of=Parents(needs).of,
        worktree=Worktrees(needs.get(Place)).add,
        keep=partial(kept, needs.get(Home)),
        known=lambda: tuple(needs.get(Toolsets).table),
        clock=needs.get(Clock),
    )
    return DelegationTools(partial(needs.made, DELEGATION), needs.get(Settings).delegation, means)


async def kept(home: Home, workspace: str, text: str) -> str:
    """Save large context where the agent can read it; its path."""
    folder = home.cache / "input" / own_name(workspace)
    return str((await asyncio.to_thread(spool, folder, (text.encode("utf-8", "replace"),))).path)


class Parents:
    """What a delegating session has: toolsets, capabilities and what is left of its limits."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs

    async def of(self, session: str, speakers: Collection[str], run: str = "") -> Parent:
        """The session as it is now, in its run or in `run`. Its children work for who spoke, or whoever of several may
        least."""
        needs, store = self._needs, self._needs.get(Store)
        hermes, record = needs.get(Hermes), await store.sessions.get(session)
        journal = hermes.scheduler.journal_of(session)
        if record is None or (journal is None and not run):
            raise ToolError("This session is at its end: it starts no agents.")
        view, mandate = journal.session if journal else await hermes.view(session), await mandate_of(store, record)
        work = await work_part(needs, record, mandate)
        record = replace(record, job=work.job)
        principal = self._principal(record, sorted(speakers))
        toolsets, lacks = self._has(record, mandate, principal)
        money, tokens = await self._left(record, work.limits, run or view.run)
        said = [message for message in view.messages if message.role is Role.USER and not message.is_runtime]
        return Parent(
            record=record,
            mandate=mandate,
            run=run or view.run,
            principal=principal,
            toolsets=toolsets,
            lacks=lacks,
            pins=tuple(view.pins.values()),
            money=money,
            tokens=tokens,
            of_job=next((each for each in work.limits if each.scope is Scope.JOB), None),
            last_said=said[-1].text if said else "",
        )

    def _principal(self, record: SessionRecord, speakers: Sequence[str]) -> Principal:
        order, standings = list(Standing), self._needs.get(Standings)
        return standings.principal(
            max(speakers or [record.principal], key=lambda each: order.index(standings.of(each)))
        )

    def _has(
        self, record: SessionRecord, mandate: Mandate | None, principal: Principal
    ) -> tuple[tuple[str, ...], tuple[Capability, ...]]:
        needs = self._needs
        built_in, settings, options = needs.get(Toolsets), needs.get(Settings), needs.get(Options)
        surface = rules_of(record.surface, principal.standing)
        narrowed = toolsets_by(mandate, needs.get(People).toolsets(record.conversation))
        granted = capabilities_of(record.surface, principal.standing, built_in.table, settings.tools)
        within = granted_by(mandate, options.capabilities)
        has = granted if within is None else granted.intersection(within)
        return built_in.toolsets(surface, narrowed), tuple(each for each in Capability if each not in has)

    async def _left(self, record: SessionRecord, limits: Sequence[Limit], run: str) -> tuple[int | None, int | None]:
        book, usage = self._needs.get(Book), self._needs.get(Store).usage
        keys = {Scope.RUN: (record.id, run), Scope.JOB: (record.job,) if record.job else ()}
        left: dict[str, list[int]] = {"money": [], "tokens": []}
        for limit in book.within(*limits).rules.limits:
            if not keys.get(limit.scope):
                continue
            spent = await usage.spent(limit.scope, keys[limit.scope])
            if limit.money is not None:
                left["money"].append(max(0, limit.money - spent.money - spent.held_money))
            if limit.tokens is not None:
                left["tokens"].append(max(0, limit.tokens - spent.tokens - spent.held_tokens))
        return min(left["money"], default=None), min(left["tokens"], default=None)


class Worktrees:
    """Git worktrees of children, in `.hermes/worktrees` of the parent's folder. Git runs where commands run, behind
    the same wall."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def add(self, session: str, key: str, folder: str) -> tuple[str, str, str]:
        """Make a worktree for a child with that key, once; the same folder in it, its branch and commit. Raises
        `ToolError`."""
        name = hashlib.sha256(key.encode()).hexdigest()[:12]
        code, out = await self._git(session, f"{key}.add", ADD.replace("NAME", name), folder)
        if code != 0:
            raise ToolError(NO_WORKTREE, quoted=Quoted(text=out.strip()[:500], origin=Origin.TOOL))
        *_, below, base = out.strip().splitlines()
        tree = f"{folder}/.hermes/worktrees/{name}/{below.removeprefix('BELOW ')}"
        return tree.rstrip("/ "), f"hermes/{name}", base

    async def look(self, child: Child, workspace: str, run: str) -> str:
        """Git's summary of what a child changed. A worktree without changes is removed."""
        words = {
            "FOLDER": child.folder,
            "TOP": workspace,
            "BASE": child.base,
            "BRANCH": child.branch,
            "REMOVED": REMOVED,
        }
        script = "".join(f"{word}={shlex.quote(value)}\n" for word, value in words.items()) + LOOK
        return (await self._git(child.parent, f"{child.session}.{run}.look", script, workspace))[1].strip()

    async def _git(self, session: str, name: str, script: str, folder: str) -> tuple[int | None, str]:
        exec_id = f"{exec_name(session)}/{exec_name(name)}"
        running = await begun(self._place, exec_id, Command(text=script, folder=folder, limit=GIT_SECONDS))
        ended = await running.wait()
        return ended.code, (await end_of_output(running, MOST_OUTPUT)).decode("utf-8", "replace")


class ChildEnd:
    """Ends a child in the commit of its run's end (`Closing`)."""

    def __init__(self, needs: Needs, record: SessionRecord) -> None:
        self._needs, self._record = needs, record
        self._change: Change | None = None

    async def prepare(self, session: View, ended: RunEnded) -> None:
        """Make the report of what the log, the records of commands and the files say."""
        delegation: Delegation = self._needs.made(DELEGATION)
        child = await self._needs.get(Store).children.get(self._record.id)
        if child is None:
            return
        report = await self._report(child, session, ended)
        outcome = LOST if ended.reason == "deaths" else ended.outcome
        self._change = await delegation.ending(child.session, session.run, outcome, report)

    def changes(self, session: View, ended: RunEnded) -> Sequence[Change]:  # noqa: ARG002 - the Protocol's shape
        """The end of the child."""
        return () if self._change is None else (self._change,)

    async def _report(self, child: Child, view: View, ended: RunEnded) -> Report:
        store, most = self._needs.get(Store), self._needs.get(Settings).delegation.max_summary_chars
        calls = calls_in(await store.history.entries(child.session))
        rows = await store.usage.rows(child.session)
        costs = [row.cost for row in rows]
        report = Report(
            summary=cut(ended.text, most, child.session),
            label=view.label,
            spent=SpentBy(
                turns=len(rows),
                tokens=sum(row.usage.input + row.usage.output for row in rows),
                cost=None if None in costs else sum(filter(None, costs)),
            ),
            trace=tuple(Step(tool=each.tool, summary=each.summary, ok=each.ok is True) for each in calls),
        )
        return await self._looked(child, calls, report, view.run, quick=ended.outcome is not Outcome.ANSWERED)

    async def _looked(self, child: Child, calls: Sequence[Made], report: Report, run: str, *, quick: bool) -> Report:
        """The report with what takes time to look up, as far as it came."""
        try:
            async with asyncio.timeout(LOOK_SECONDS_STOPPED if quick else LOOK_SECONDS):
                checks = [check for call in calls if (check := await self._check(child, call))]
                report = replace(report, checks=tuple(checks))
                files = await asyncio.to_thread(lambda: tuple(map(artefact, self._written(child, calls))))
                report = replace(report, artefacts=files)
                if child.branch and (parent := await self._needs.get(Store).sessions.get(child.parent)):
                    worktrees = Worktrees(self._needs.get(Place))
                    report = replace(report, diff=await worktrees.look(child, parent.workspace, run))
        except (TimeoutError, HermesError) as error:
            log.warning("the report of %s is not whole: %s", child.session, str(error) or "it took too long")
        return report

    async def _check(self, child: Child, call: Made) -> Check | None:
        if call.tool != TERMINAL:
            return None
        exec_id = f"{exec_name(child.session)}/{exec_name(f'{child.session}-{call.id}')}"
        running = await self._needs.get(Place).attach(exec_id)
        if running is None:
            return None
        ended = await running.poll()
        return Check(command=running.command.text, exit=ended.code if ended else None, exec_id=exec_id)

    def _written(self, child: Child, calls: Sequence[Made]) -> list[str]:
        built_in = self._needs.get(Toolsets)
        writers = {each.schema.name: each for each in built_in.tools_of("files") if Capability.FS_WRITE in each.needs}
        paths: dict[str, None] = {}
        for call in calls:
            if call.tool in writers and call.ok:
                facts = writers[call.tool].facts(call.arguments, child.folder)
                paths.update(dict.fromkeys(facts.paths or ()))
        return list(paths)


def artefact(path: str) -> Artefact:
    """A file as it is now. Blocks."""
    try:
        size = Path(path).stat().st_size
        if not Path(path).is_file() or size > LARGEST_HASHED:
            return Artefact(path=path, bytes=size)
        with Path(path).open("rb") as file:
            return Artefact(path=path, sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=size)
    except OSError:
        return Artefact(path=path)


def parent_end(needs: Needs, record: SessionRecord, session: View, ended: RunEnded) -> Sequence[Change]:
    """What becomes of the children for which the run's calls wait: a stop stops them too. A child has nobody left who
    would read a later report: its own are stopped in any case."""
    delegation: Delegation = needs.made(DELEGATION)
    stopped = ended.outcome is Outcome.STOPPED or record.surface == Work.CHILD
    open_calls = {call.id for call in session.open_calls}
    return (delegation.leaving(record, session.run, open_calls, stopped=stopped),)


class OwnProcesses:
    """Processes that work on one child each, outside the wall as this one is (`Apart`). A second process for a child
    does no harm: the lane has one owner, and the other one waits. Should one die, this process works on its child."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._watched: set[str] = set()

    def queue(self, session: str) -> str:
        """The queue of a child's process."""
        return queue_of(session)

    async def start(self, child: Child) -> None:
        """Start the process of a child, once for as long as it lives."""
        if child.session in self._watched:
            return
        self._watched.add(child.session)
        home = self._needs.get(Home)
        profile = ["--profile", home.profile] if home.profile else []
        words = [sys.executable, "-m", "hermes_agent", *profile, "worker", "--session", child.session]
        env = {**environment(), "HERMES_HOME": str(home.base)}
        begin = partial(_started, home.cache / "children", child.session, words, env)
        spawn(self._over(child, await asyncio.to_thread(begin)), name=f"process of {child.session}")

    async def _over(self, child: Child, running: Process) -> None:
        try:
            await running.exited()
            delegation: Delegation = self._needs.made(DELEGATION)
            await delegation.recover(child.session)
        finally:
            self._watched.discard(child.session)


def _started(folder: Path, name: str, words: Sequence[str], env: Mapping[str, str]) -> Process:
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with (folder / f"{name}.log").open("ab") as out:
        return start_detached(words, cwd=str(folder), env=env, stdin=None, out=out.fileno())
