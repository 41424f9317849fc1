"""Commands that show what the session has used, and what the limits leave."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.costs import (
    LimitLine,
    Total,
    cached_share,
    dollars,
    list_limits,
    session_totals,
)


async def cost(desk: Desk, _: str) -> Done:
    """What this session has used by model, and each limit that it is held to."""
    used = list(map(_used, await session_totals(desk.access, desk.record.id)))
    limits = map(_sentence, await list_limits(desk.access, desk.record))
    return Done(text="\n".join([*(used or ["Nothing used yet."]), *limits]))


def _used(total: Total) -> str:
    return (
        f"{total.key}: {total.calls} model call{'s' * (total.calls > 1)}, {total.usage.input:,} tokens in "
        f"({cached_share(total.usage)} cached), {total.usage.output:,} out, US dollars {dollars(total)}."
    )


def _sentence(line: LimitLine) -> str:
    most, used, reserved, left = line.text
    if line.left is None:
        return f"{line.setting}: {most} {line.of}."
    return f"{line.setting}: {used} used of {most}, {reserved} reserved, {left} left ({line.of})."


COST = Command(name="cost", summary="Show what this session has used, and what is left.", act=cost, while_running=True)
USAGE = Command(name="usage", summary="The same as /cost.", act=cost, while_running=True)
