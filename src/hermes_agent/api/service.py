"""Service behind the API endpoints: finds or creates a request's session, submits its message, follows the run."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.api.history import events_of, mark_of, pins_of, tells
from hermes_agent.api.keys import PLATFORM
from hermes_agent.api.problems import FINAL, busy, missing
from hermes_agent.api.requests import Part, Said, parts_of, said_as, text_of
from hermes_agent.api.run_view import Ref, RunView, ref_of
from hermes_agent.app.intake import is_small
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.chats import retried
from hermes_agent.app.operations.sessions import (
    SessionRecord,
    begin_with,
    branch_session,
    current_session,
    find_mail,
    get_session,
    mail_at,
    mail_log,
    read_log,
)
from hermes_agent.app.system import System
from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal, Standing, own_name, workspace_of
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NoModel, NothingMore, UnknownSession
from hermes_agent.core.events import RunEnded, Seen
from hermes_agent.host.inbound.message import Refused, written
from hermes_agent.host.tasks import spawn

SELF = "hermes"
"""The name of the model that is the agent itself, with the model that is configured."""
OURS = frozenset({"", SELF, "hermes-agent"})
REFUSED = "refused"
"""The state of a message that no run will take."""
MOST_MATCHED = 10_000
"""Sessions that are kept in mind as the one that a request goes on in; nobody waits so long for a log to go on."""
BEGIN_SECONDS = 1.0
"""How long an order to stop waits for its run to begin before it is acknowledged; it holds also after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A message that a client wants submitted, and its target session: by id, by the client's own name, after an
    earlier Responses API response, by matching `history`, or new.

    `once` is the idempotency key, compared with `digest`. `instructions` and `model` (empty: the session's) hold for
    this run; `system` holds from then on.
    """

    who: Principal
    parts: tuple[Part, ...]
    words: str
    session: str = ""
    name: str = ""
    previous: str = ""
    history: tuple[Said, ...] = ()
    instructions: str = ""
    system: str = ""
    model: str = ""
    workspace: str = ""
    once: str = ""
    busy: Busy = Busy.ALONE
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A submitted message: a reference to its run, the log number after which its events begin, and the model (empty:
    the configured one)."""

    ref: Ref
    after: int
    model: str = ""


class AgentService:
    """Submits messages of API clients to the agent, and lets clients find, watch and stop the runs that answer them."""

    def __init__(self, runtime: System) -> None:
        self._runtime = runtime
        self._matched: dict[str, int] = {}
        self._made = ""
        self._naming = asyncio.Lock()
        self._stopping: dict[Ref, asyncio.Task[None]] = {}
        self.waiting = 0

    async def say(self, wish: Wish) -> Begun:
        """Submit a message; it is durable when this returns. Raises `Refused`, `UnknownSession`."""
        if self.waiting >= self._runtime.settings.api.max_waiting:
            raise busy("Too many requests wait for a run here (`api.max_waiting`). Try again in a moment.")
        if wish.once:
            wish = replace(wish, digest=digest_of(wish))
            if (begun := await self._repeated(wish)) is not None:
                return begun
        wish = replace(wish, model=self.model_of(wish))
        if wish.session:
            return await self._go_on(wish, await get_session(Access(system=self._runtime, who=wish.who), wish.session))
        if wish.previous:
            return await self._alone_in(await self._after(wish), wish)
        place = _place(wish)
        wish = replace(wish, history=await self._as_logged(wish))
        if wish.name:
            async with self._naming:  # Several may ask for one that is not there yet.
                record = await current_session(self._runtime, place) or await self._opened(wish, place)
            return await self._go_on(wish, record)
        if wish.history:
            current = await current_session(self._runtime, place)
            matches = current is not None and await self._matches(current, wish)
            return await self._alone_in(current if matches and current else await self._opened(wish, place), wish)
        inbound = self._inbound(wish, place)
        submitted = await self._runtime.hermes.start_session(inbound, workspace=wish.workspace or self._workspace)
        return await self._begun(wish, submitted.session, submitted.inbox, 0)

    async def _repeated(self, wish: Wish) -> Begun | None:
        """The run of an earlier request with the same idempotency key. Raises `Refused` if that request differed."""
        mail, digest = await find_mail(self._runtime, PLATFORM, _source(wish))
        if mail is None:
            return None
        if digest not in ("", wish.digest):
            words = "Another request was sent with this `Idempotency-Key` before: a new request needs a new key."
            raise Refused(422, words, code="idempotency_key_reused", headers=FINAL)
        return Begun(ref=Ref(session=mail.session, row=mail.id), after=0, model=wish.model)

    async def _as_logged(self, wish: Wish) -> tuple[Said, ...]:
        """The client's history as the log holds it: large parts shortened in the same way."""
        runtime, told = self._runtime, list(wish.history)
        own = own_name(workspace_of("", wish.who, Conversation(platform=PLATFORM)))
        for place, said in enumerate(told):
            parts = parts_of(said.content, wish.who) if said.role == "user" else ()
            if not is_small(parts):
                window = await runtime.intake.window(wish.model)
                fitted = await asyncio.to_thread(runtime.intake.fitted, parts, window, own)
                told[place] = Said(role=said.role, content=list(map(said_as, fitted.parts)))
        return tuple(told)

    async def _alone_in(self, record: SessionRecord, wish: Wish) -> Begun:
        try:
            return await self._go_on(wish, record)
        except HermesError:
            self._matched.pop(record.id, None)
            raise

    @property
    def _workspace(self) -> str:
        """The default working folder of runs; created if missing. Raises `Refused`."""
        folder = self._runtime.settings.api.workspace or str(self._runtime.home.root / "workspace")
        if folder != self._made:
            try:
                Path(folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                words = f"The folder {folder} cannot be made ({error.strerror}): see `api.workspace`."
                raise Refused(503, words, code="no_workspace") from error
            self._made = folder
        return folder

    async def listen(self, begun: Begun, story: RunView, *, live: bool = True) -> AsyncGenerator[Seen, None]:
        """Iterate the run's events, each applied to `story` first, until it ends or waits for a person; without
        `live` only logged events."""
        watched = self._runtime.hermes.watch(begun.ref.session, begun.after, begun.ref.row, live=live)
        async with self._waited_for(), aclosing(watched) as events:
            async for seen in events:
                if story.take(seen):
                    yield seen
                if story.is_over or (story.question is not None and await self._asks(begun.ref, story.question.id)):
                    return

    @asynccontextmanager
    async def _waited_for(self) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    async def _asks(self, ref: Ref, question: str) -> bool:
        """Whether a run still waits with that question; older ones turn up when a log is read from the start."""
        now = (await story_of(self._runtime, ref)).question
        return now is not None and now.id == question

    async def run_view(self, who: Principal, name: str, noun: str = "run") -> RunView:
        """A run's logged state, by its public id; `noun` names it in errors. Raises `Refused`."""
        none = missing(f"There is no {noun} `{name[:80]}` of yours: it was deleted, or never there.")
        ref = ref_of(name)
        if ref is None:
            raise none
        try:
            await get_session(Access(system=self._runtime, who=who), ref.session)
        except UnknownSession as error:
            raise none from error
        story = await story_of(self._runtime, ref)
        if not story.run:
            mail = await mail_at(self._runtime, ref.row)
            if mail is None or mail.session != ref.session:
                raise none
            if mail.state == REFUSED:
                story.status, story.text, story.error = "failed", mail.reason, "HermesError"
        return story

    async def stop(self, story: RunView) -> bool:
        """Stop a run; one still queued is stopped when it starts, without touching the run before it. False if it
        has ended."""
        ref = story.ref
        if story.is_over:
            return False
        if story.run:
            return await self._runtime.hermes.stop_run(ref.session, story.run, ref.row)
        if (stopping := self._stopping.get(ref)) is None:
            work = retried(partial(self._stop_begun, ref), self._runtime.clock)
            stopping = self._stopping[ref] = spawn(work, name=f"stop of {ref.id()}")
            stopping.add_done_callback(lambda _: self._stopping.pop(ref, None))
        await asyncio.wait((stopping,), timeout=BEGIN_SECONDS)
        return True

    async def _stop_begun(self, ref: Ref) -> None:
        """Stop the run for this message as soon as it starts; nothing if it never starts."""
        story = RunView(ref=ref)
        with suppress(NothingMore, UnknownSession):
            async with aclosing(self._runtime.hermes.watch(ref.session, 0, ref.row, live=False)) as events:
                while not story.run:
                    story.take(await anext(events))
            await self._runtime.hermes.stop_run(ref.session, story.run, ref.row)

    def model_of(self, wish: Wish) -> str:
        """The model that a request names; empty for the configured one. Raises `Refused`."""
        if wish.model in OURS:
            return ""
        if wish.who.standing is not Standing.OWNER:
            raise Refused(403, f"Only the owner may choose a model: ask for `{SELF}`.", code="model_not_allowed")
        try:
            return self._runtime.route(wish.model).name
        except NoModel as error:
            raise missing(f"There is no model `{wish.model[:100]}` here: {error}", "model_not_found") from error

    def name_of(self, model: str) -> str:
        """The full name of a model (empty: the configured one)."""
        try:
            return self._runtime.route(model).name
        except NoModel:
            return SELF

    async def _go_on(self, wish: Wish, record: SessionRecord) -> Begun:
        hermes = self._runtime.hermes
        view = await hermes.view(record.id)
        if view.running and view.asked - view.answers.keys():
            words = f"The session {record.id} waits for an answer to what its run asked; give that first."
            raise Refused(409, words, code="waiting_for_answer", headers=FINAL)
        submitted = await hermes.submit(self._inbound(wish, _place(wish)), record.id)
        begun = await self._begun(wish, record.id, submitted.inbox, view.number)
        return replace(begun, model=wish.model or record.model)

    async def _opened(self, wish: Wish, place: Conversation) -> SessionRecord:
        """A new session that begins with the client's history, or the one with the client's name."""
        hermes, workspace = self._runtime.hermes, wish.workspace or self._workspace
        record = await hermes.open_session(place, wish.who, workspace=workspace, new=not wish.name)
        if wish.history:
            await begin_with(self._runtime, record.id, events_of(wish.history, wish.who))
        return record

    async def _after(self, wish: Wish) -> SessionRecord:
        """The session of an earlier response if that is its last and it is free, else a copy of it up to that
        response."""
        try:
            found = await self.run_view(wish.who, wish.previous, "response")
            if found.is_over and not found.run:
                raise missing(f"No run took the message of that response: {found.text}")
        except Refused as error:
            words, param = str(error), "previous_response_id"
            raise Refused(404, words, code="previous_response_not_found", param=param) from error
        access = Access(system=self._runtime, who=wish.who)
        record, story, last = await get_session(access, found.ref.session), RunView(ref=found.ref), 0
        end: int | None = None
        for entry in await read_log(access, found.ref.session):
            story.take(entry)
            last = entry.number
            if end is None and story.is_over:
                end = entry.number
        if end is None:
            raise Refused(409, "The answer to go on from is not whole yet.", code="not_over", headers=FINAL)
        return (
            record
            if end == last and self._claims(record.id, end)
            else await branch_session(access, record.id, upto=end)
        )

    async def _matches(self, record: SessionRecord, wish: Wish) -> bool:
        """Whether an idle session holds exactly the client's history; it is then reserved for this request."""
        if record.principal != wish.who.key or self._runtime.hermes.runs(record.id, ended=False):
            return False
        entries = await read_log(Access(system=self._runtime, who=wish.who), record.id)
        is_over = bool(entries) and isinstance(entries[-1].event, RunEnded)
        return is_over and tells(entries, wish.history, wish.who) and self._claims(record.id, entries[-1].number)

    def _claims(self, session: str, number: int) -> bool:
        """Reserve a session for one request until its log grows; False if another request has it."""
        if self._matched.get(session) == number:
            return False
        self._matched[session] = number
        while len(self._matched) > MOST_MATCHED:
            del self._matched[next(iter(self._matched))]
        return True

    async def _begun(self, wish: Wish, session: str, row: int | None, after: int) -> Begun:
        if row is None:  # The same request came twice at once, and the other was first.
            begun = await self._repeated(wish)
            assert begun is not None  # Its identity was taken.
            return begun
        return Begun(ref=Ref(session=session, row=row), after=after, model=wish.model)

    def _inbound(self, wish: Wish, place: Conversation) -> Inbound:
        ids = self._runtime.ids
        return Inbound(
            source=PLATFORM,
            source_id=_source(wish) if wish.once else f"{ids.short()}{ids.short()}",
            principal=wish.who,
            conversation=place,
            parts=wish.parts,
            received=self._runtime.clock.now(),
            busy=wish.busy,
            pins=pins_of(wish.instructions, wish.system, wish.who),
            model=wish.model,
            digest=wish.digest,
        )


async def story_of(runtime: System, ref: Ref) -> RunView:
    """A run's state, folded from the log."""
    story = RunView(ref=ref)
    async for page in mail_log(runtime, ref.session, ref.row):
        for entry in page:
            story.take(entry)
    return story


def _place(wish: Wish) -> Conversation:
    user = wish.who.user
    if wish.name:
        return Conversation(platform=PLATFORM, chat_kind="name", chat=user, thread=wish.name)
    first = next((text_of(said.content) for said in wish.history if said.role == "user"), wish.words)
    mark = mark_of(wish.instructions + wish.system, first)
    return Conversation(platform=PLATFORM, chat_kind="chat", chat=user, thread=mark)


def _source(wish: Wish) -> str:
    """The idempotency identity of a request; each principal's keys are separate."""
    hashed = hashlib.sha256(wish.once.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{wish.who.user}:{hashed}"


def digest_of(wish: Wish) -> str:
    """Content digest of a request, without its output options, for comparing repeats."""
    where = (wish.session, wish.name, wish.previous, wish.workspace, wish.busy)
    said = (wish.parts, wish.history, wish.instructions, wish.system, wish.model)
    return hashlib.sha256(written((*where, *said))).hexdigest()
