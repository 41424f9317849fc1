"""Commands that show what the session has used, and what the limits leave."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.costs import LimitLine, cached_share, dollars, limit_lines, together
from hermes_agent.core.spending import day_of
from hermes_agent.store.accounts import Owner
from hermes_agent.store.usage import GroupBy


async def cost(desk: Desk, _: str) -> Done:
    """What this session has used by model, and each limit that it is held to."""
    lines = [*await _used(desk), *map(_sentence, await _limits(desk))]
    return Done(text="\n".join(lines))


async def _used(desk: Desk) -> list[str]:
    totals = await desk.hermes.store.usage.totals(GroupBy.MODEL, session=desk.record.id)
    if not totals:
        return ["Nothing used yet."]
    parts = [*totals, together(totals)] if len(totals) > 1 else totals
    return [
        f"{total.key}: {total.calls} model call{'s' * (total.calls > 1)}, {total.usage.input:,} tokens in "
        f"({cached_share(total.usage)} cached), {total.usage.output:,} out, US dollars {dollars(total)}."
        for total in parts
    ]


async def _limits(desk: Desk) -> list[LimitLine]:
    runtime, record, store = desk.runtime, desk.record, desk.hermes.store
    at = runtime.clock.now()
    run = await store.usage.last_run(record.id)
    owner = Owner(session=record.id, run=run, job=record.job, principal=record.principal, day=day_of(at))
    return await limit_lines(store, runtime.settings.rules, at, owner)


def _sentence(line: LimitLine) -> str:
    most, used, reserved, left = line.text
    if line.left is None:
        return f"{line.setting}: {most} {line.whose}."
    return f"{line.setting}: {used} used of {most}, {reserved} reserved, {left} left ({line.whose})."


COST = Command(name="cost", summary="Show what this session has used, and what is left.", act=cost, while_running=True)
USAGE = Command(name="usage", summary="The same as /cost.", act=cost, while_running=True)
