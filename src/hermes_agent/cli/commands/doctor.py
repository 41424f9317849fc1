"""Subcommand `hermes doctor`: checks everything that an agent needs and says how to fix problems."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import click

from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.models import refused_by
from hermes_agent.app.operations.health import ANSWER_SECONDS, check_database, check_memory
from hermes_agent.app.operations.models import ask_once
from hermes_agent.app.operations.security import Finding, probe
from hermes_agent.app.places import try_place
from hermes_agent.app.toolkit import CLI, Toolkit, needs_without_store
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.offers import key_name, route_to, single
from hermes_agent.cli.operation import offline
from hermes_agent.cli.output import show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.chat import Slot
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError, NoModel, ProviderError
from hermes_agent.core.shown import plural
from hermes_agent.host.config import MEND
from hermes_agent.host.paths import environment
from hermes_agent.providers.abilities import limits_of
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.sandbox.place import NO_WALL

OLDEST_PYTHON = (3, 11)
FEW = 3
WALL_LESS = "No wall stands here. `apt install bubblewrap` and `hermes config set terminal.jail auto` build one."
LEAST_ROOM = 500 * 1024 * 1024
PROGRAMS = {
    "git": "it finds a project's root and its history",
    "rg": "search_files is slower without ripgrep",
}


class State(StrEnum):
    """Result of a check of `hermes doctor`; `warn` still works, `fail` does not."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What `hermes doctor` found out about one thing; `todo` says how to fix it, empty if there is nothing to do."""

    name: str
    state: State
    found: str
    todo: str = ""


def ok(name: str, found: str, todo: str = "") -> Check:
    """A passed check."""
    return Check(name=name, state=State.OK, found=found, todo=todo)


def warn(name: str, found: str, todo: str = "") -> Check:
    """A check with a warning."""
    return Check(name=name, state=State.WARN, found=found, todo=todo)


def fail(name: str, found: str, todo: str = "") -> Check:
    """A failed check."""
    return Check(name=name, state=State.FAIL, found=found, todo=todo)


def python(_surface: Surface) -> list[Check]:
    """Check the Python version."""
    found = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info[:2] >= OLDEST_PYTHON
    return [ok("python", found) if enough else fail("python", found, "Install Python 3.11 or later.")]


def home(surface: Surface) -> list[Check]:
    """Check that the home is usable and private."""
    place = surface.home
    try:
        place.ensure()
    except HomeError as error:
        return [fail("home", str(place.root), str(error))]
    mode, free = place.root.stat().st_mode & 0o777, shutil.disk_usage(place.root).free
    open_to_others = [warn("home mode", f"others can look into it ({mode:o})", f"chmod 700 {place.root}")]
    room = f"{free / 1e9:,.1f} GB free"
    full = warn("disk", room, "Free some room: a full disk stops every run.")
    disk = ok("disk", room) if free >= LEAST_ROOM else full
    return [ok("home", str(place.root)), *(open_to_others if mode & 0o077 else ()), disk]


def settings(surface: Surface) -> list[Check]:
    """Check config.yaml and .env."""
    loaded = surface.loaded
    if loaded.problems:
        todo = f"{loaded.remedy} {MEND}"
        wrong = [fail("config", str(problem)) for problem in loaded.problems]
        return [*wrong[:-1], replace(wrong[-1], todo=todo), *_env(surface)]
    count = len(loaded.sources)
    found = "defaults" if loaded.basis == "defaults" else f"{count} setting{'' if count == 1 else 's'}"
    return [ok("config", found), *_env(surface)]


def _env(surface: Surface) -> list[Check]:
    try:
        warnings = surface.secrets.warnings
    except HomeError as error:
        return [fail("keys file", str(error))]
    return [warn("keys file", warning) for warning in warnings]


def programs(_surface: Surface) -> list[Check]:
    """Check for programs that some tools use."""
    return [
        ok(name, found) if (found := shutil.which(name)) else warn(name, "not found", f"Install it: {why}.")
        for name, why in PROGRAMS.items()
    ]


def keys(surface: Surface) -> list[Check]:
    """Check that a vendor has a key, where one is needed."""
    try:
        found = [name for name in VENDORS if key_name(surface, load_vendor(name))]
    except HomeError:
        return []
    if found:
        return [ok("keys", ", ".join(found))]
    try:
        return [ok("keys", f"none; {route_to(surface, surface.invocation.model).name} is asked without one")]
    except NoModel:
        return [warn("keys", "none", "`hermes setup` finds or asks for one; a local model needs none.")]


def auxiliary(surface: Surface) -> list[Check]:
    """Check that the configured background models can be asked."""
    checks = []
    for purpose in Purpose:
        name = surface.loaded.value.auxiliary.of(purpose).model
        try:
            checks += [ok("auxiliary", f"{purpose}: {single(surface, name).name}")] if name else []
        except NoModel as error:
            todo = f"{error} Meanwhile it is done without (`auxiliary.{purpose}.model`)."
            checks.append(warn("auxiliary", f"{purpose}: {name} cannot be asked", todo))
    return checks


def tools(surface: Surface) -> list[Check]:
    """Check that the model can be given every tool."""
    try:
        kit = Toolkit(needs_without_store(surface.home, surface.loaded.value))
        route = route_to(surface)
    except NoModel:
        return []  # that there is none is told where it is asked
    except HermesError as error:
        return [fail("tools", "unknown", str(error))]
    aside = [*kit.quarantined, *refused_by(route, kit.toolbox(CLI).offered)]
    checks = [warn("tools", f"{tool.name} is left out: {tool.reason}") for tool in aside]
    return checks + [warn("model", said) for said in limits_of(route)]


async def place(surface: Surface, *, offline: bool) -> list[Check]:
    """Check that commands run in the configured place."""
    terminal = surface.loaded.value.terminal
    if offline and terminal.place != "local":
        return []
    try:
        found = await try_place(surface.home, terminal, environment(), str(Path.cwd()), RandomIds().short())
    except HermesError as error:
        return [fail("place", terminal.place, str(error))]
    except TimeoutError:
        return [fail("place", terminal.place, "It did not answer within a minute.")]
    if found.endswith("without a jail"):
        chosen = "You chose no wall around commands. `hermes config set terminal.jail auto` builds one."
        return [warn("place", found, chosen if terminal.jail == "none" else NO_WALL)]
    return [ok("place", found)]


async def database(surface: Surface) -> list[Check]:
    """Check the database, down to each record."""
    try:
        async with offline(surface) as access:
            health = await check_database(access)
    except HermesError as error:
        return [fail("database", str(error))]
    found = f"{health.database.engine}, {'with' if health.database.full_text else 'without'} full-text search"
    if damage := health.database.damage:
        todo = "Put a backup in its place; the manual says how (sessions.md, Backup)."
        return [fail("database", f"{found}: {damage}", todo)]
    checks = [(ok if health.database.full_text else warn)("database", found)]
    checks += [_damaged(health.damaged)] * bool(health.damaged)
    return checks + [_undelivered(slot) for slot in health.undelivered[:FEW]]


def _damaged(entries: list[str]) -> Check:
    found = f"{plural(len(entries), 'entry', 'entries')} of logs cannot be read: {', '.join(entries[:FEW])}"
    more = f" and {len(entries) - FEW} more" if len(entries) > FEW else ""
    todo = "They are left out wherever the sessions are read. To have them back, put a backup in the database's place."
    return fail("log", f"{found}{more}", todo)


def _undelivered(slot: Slot) -> Check:
    found = f"message {slot.id} for {slot.to.platform} chat {slot.to.chat} was not delivered: {slot.error}"
    return warn("outbox", found)


async def memory(surface: Surface) -> list[Check]:
    """Check that the memory provider answers, if there is one."""
    settings = surface.loaded.value.memory
    if settings.provider == "none":
        return []
    try:
        async with offline(surface) as access:
            found = await check_memory(access, surface.secrets)
    except (HermesError, TimeoutError) as error:
        said = str(error) or f"no answer in {ANSWER_SECONDS:.0f} seconds"
        todo = "Until it answers, nothing is recalled; the notes work all the same."
        return [fail("memory", f"{settings.provider}: {said}", todo)]
    return [ok("memory", f"{settings.provider}: {found}")]


async def model(surface: Surface) -> list[Check]:
    """Check that the configured model answers."""
    try:
        route = route_to(surface)
        async with offline(surface) as access:
            answered = await ask_once(access, surface.secrets, route, principal="cli:doctor")
    except NoModel as error:
        return [warn("model", "none", str(error))]
    except ProviderError as error:
        return [fail("model", f"{error.provider}/{error.model}", str(error))]
    except HermesError as error:
        return [warn("model", "not asked", str(error))]
    return [ok("model", f"{answered.route} answered in {answered.seconds:.2f} s")]


QUICK: tuple[Callable[[Surface], list[Check]], ...] = (python, home, settings, programs, keys, auxiliary, tools)


@click.command(short_help="Check this installation and say what to do.")
@click.option("--offline", is_flag=True, help="Ask no model.")
@click.option("--security", is_flag=True, help="Try to break what the agent is kept from, and say what keeps it.")
@pass_surface
def doctor(surface: Surface, offline: bool, security: bool) -> int:
    """Check this installation: Python, home, settings, keys, database, programs, whether commands run in their
    place, and whether the model answers.

    The exit code is 1 where something does not work, or a promise of `--security` does not hold.
    """
    if security:
        return _security(surface)
    checks = asyncio.run(examine(surface, offline=offline))
    todo = (f"{check.name}: {check.todo}" for check in checks if check.todo)
    words = "\n".join((table([(check.state.value, check.name, check.found) for check in checks]), *todo))
    return show(checks, words, code=Exit.FAILED if any(check.state is State.FAIL for check in checks) else Exit.OK)


def _security(surface: Surface) -> int:
    settings = surface.loaded.value.terminal
    surface.home.ensure()
    findings: list[Finding] = asyncio.run(probe(surface.home, settings, environment(), RandomIds().short()))
    rows = [(each.state, each.promise.name, each.kept_by, each.promise.says) for each in findings]
    bad = (f"{each.promise.name}: {each.found}" for each in findings if each.state in ("broken", "hint"))
    words = "\n".join((table(rows), *bad, *(() if findings[0].wall else (WALL_LESS,))))
    return show(findings, words, code=Exit.FAILED if any(each.state == "broken" for each in findings) else Exit.OK)


async def examine(surface: Surface, *, offline: bool) -> list[Check]:
    """Run all checks in order; those that depend on a failed one are skipped."""
    checks = [answer for check in QUICK for answer in check(surface)]
    if any(check.name == "home" and check.state is State.FAIL for check in checks):
        return checks
    checks += await database(surface)
    checks += await place(surface, offline=offline)
    return checks if offline else checks + await memory(surface) + await model(surface)
