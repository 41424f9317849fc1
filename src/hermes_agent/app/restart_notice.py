"""Who asked for a restart, kept over it, and told when it is done."""

from __future__ import annotations

import platform
from functools import partial

from hermes_agent.app.system import System
from hermes_agent.core.inbound import Conversation, Inbound
from hermes_agent.core.outbound import Content, Letter
from hermes_agent.version import VERSION


def place_of(runtime: System) -> str:
    """Under which name the processes of this home keep it; another machine on the same database has its own."""
    return f"restart {platform.node()} {runtime.home.root}"


async def note_asker(runtime: System, inbound: Inbound) -> None:
    """Keep in which chat a restart was asked for."""
    await runtime.store.facts.set(place_of(runtime), inbound.conversation.key, f"{runtime.clock.now():.3f}")


async def report_back(runtime: System) -> None:
    """Say in the chats that asked for it that this process has begun. Raises `StoreError`."""
    place, now = place_of(runtime), runtime.clock.now()
    for conversation, at in (await runtime.store.facts.of(place)).items():
        text = f"I am back: Hermes {VERSION}, after {max(0.0, now - float(at)):.0f} s."
        letter = Letter(
            key=f"back:{conversation}:{at}", to=Conversation.parse(conversation), content=Content(text=text)
        )
        await runtime.store.write(partial(runtime.store.outbox.put, letter=letter))
        await runtime.store.facts.set(place, conversation, "")
