"""Who does the jobs of learning: one at a time in this process, beside the conversations, given back when it leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from hermes_agent.core.errors import HermesError, LostLease, StoreError
from hermes_agent.host.logs import log_of
from hermes_agent.host.tasks import spawn
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind, JobState

log = logging.getLogger(__name__)

Does = Callable[[Claim], Awaitable[Account]]
"""Does one job; raises `HermesError` where it could not."""
Tells = Callable[[Job], Awaitable[bool]]
"""Tells the conversation what came of a job; False where that has to wait."""


class Unfinished(HermesError):
    """A job could not be brought to its end; `account` has what it used, and what came of it until then."""

    def __init__(self, reason: str, account: Account) -> None:
        super().__init__(reason)
        self.account = account


class Jobs:
    """The jobs of a store, as far as this process does them. `tells` is told of each that brought something."""

    def __init__(self, store: Store, does: Mapping[JobKind, Does], tells: Tells) -> None:
        self._store, self._does, self._tells = store, does, tells
        self._task: asyncio.Task[int] | None = None
        self._again = self._leaving = False

    def ring(self) -> None:
        """There is work: begin, unless it is being done."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = spawn(self._until_rest(), name="learning")

    async def run(self) -> int:
        """Do everything that is in line; how many jobs that were."""
        self.ring()
        assert self._task is not None
        return await asyncio.shield(self._task)

    async def finish(self) -> None:
        """Begin no other job, and return when the one under way is done."""
        self._leaving = True
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        """Stop: what is under way is given back to whoever comes next."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _until_rest(self) -> int:
        done = 0
        while self._again:
            self._again = False
            while (claim := await self._claim()) is not None:
                await self._do(claim)
                done += 1
            await self._report()
        return done

    async def _claim(self) -> Claim | None:
        return None if self._leaving else await self._store.learning.claim(list(self._does))

    async def _do(self, claim: Claim) -> None:
        # Boundary: one job.
        try:
            account = await self._does[claim.job.kind](claim)
            log_of("learning", session=claim.job.session).info("%s %s: done", claim.job.kind, claim.job.id)
            await self._store.learning.end(claim, JobState.DONE, account)
        except asyncio.CancelledError:
            with suppress(StoreError):
                await asyncio.shield(self._store.learning.release(claim, "The program ended."))
            raise
        except LostLease:
            log.warning("job %s was taken over", claim.job.id)
        except Unfinished as error:
            await self._failed(claim, error.account)
        except HermesError as error:
            await self._failed(claim, Account(cost=None, note=str(error)))
        except Exception as error:
            log.exception("job %s failed", claim.job.id)
            await self._failed(claim, Account(cost=None, note=f"{type(error).__name__}: {error}"))

    async def _failed(self, claim: Claim, account: Account) -> None:
        """End it: what it was about is seen again with what comes next; nothing is tried over and over."""
        log.info("job %s: %s", claim.job.id, account.note)
        await self._store.learning.end(claim, JobState.FAILED, account)

    async def _report(self) -> None:
        for job in await self._store.learning.untold():
            if await self._tells(job):
                await self._store.learning.mark_reported(job.id)
