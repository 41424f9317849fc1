"""Running one hook: a process of its own, the event as JSON on its input, its answer as JSON, within its time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.app.hooks.consent import resolved
from hermes_agent.app.hooks.settings import HookSettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.process import open_piped

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
    """A hook did not end as it should have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a hook answered: a reason to stop (empty: none), words to add, a text in place of the one it was given."""

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
    """What the hook answers to an event. Raises `HookFailed`."""
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
    """An answer in JSON; words that are none are only for whoever looks at the hook."""
    with suppress(msgspec.DecodeError, RecursionError):
        answer = msgspec.json.decode(out, type=_Answer)
        blocks = bool(answer.block) or answer.decision in ("block", "deny")
        reason = answer.reason or (answer.block if isinstance(answer.block, str) else "") or "A hook said no."
        return Verdict(block=reason if blocks else "", context=answer.context, text=answer.text)
    return Verdict()
