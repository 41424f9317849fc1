"""Asking a person whether files that a command deleted elsewhere are to be deleted here too."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hermes_agent.core.errors import Refused
from hermes_agent.core.tool import CallContext, Question
from hermes_agent.sandbox.place import Ended

SHOWN = 20


async def decided(ended: Ended, context: CallContext) -> Ended:
    """The end with what came of its deletion; nothing is deleted where nobody is there to say so."""
    deletion = ended.deletion
    if deletion is None:
        return ended
    more = [f"and {len(deletion.paths) - SHOWN:,} more"] if len(deletion.paths) > SHOWN else []
    names = "\n".join((*deletion.paths[:SHOWN], *more))
    question = Question(
        text=f"The command deleted files elsewhere ({len(deletion.paths):,}). May I delete them here too? `/rollback` "
        f"puts back those that the checkpoint before the command holds.\n{names}\nin {context.workspace}",
        about=hashlib.sha256("\0".join(deletion.paths).encode("utf-8", "surrogateescape")).hexdigest(),
        choices=("once", "deny"),
        purpose="approval",
    )
    try:
        answer = await context.ask(question)
    except Refused:
        return ended
    agreed = answer.strip().lower() in ("once", "yes", "y", "o", "session", "always")
    note = await deletion.delete() if agreed else "The person said to keep them; they go there again."
    return replace(ended, notes=(*ended.notes, note), deletion=None)
