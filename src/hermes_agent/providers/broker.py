"""The broker: sends every model request; records it in the ledger, applies limits, retries, and falls back to other
models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import field, replace
from http import HTTPStatus

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import (
    AuthRefused,
    ContextTooLong,
    EmptyReply,
    PayloadTooLarge,
    ProviderError,
    ThinkingRefused,
)
from hermes_agent.core.messages import (
    Continuing,
    Delta,
    File,
    Image,
    Message,
    ModelRequest,
    Part,
    Remark,
    Reply,
    Retrying,
    Role,
    StopReason,
    Text,
    ToolResult,
    Usage,
)
from hermes_agent.providers.abilities import limits_for
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing.chain import Chain
from hermes_agent.providers.routing.endpoint import CallOpened, CallSettled, Endpoint, Ledger, PreparedRequest
from hermes_agent.providers.routing.joining import Draft, going_on
from hermes_agent.providers.routing.policy import Failed, GiveUp, Place, Step, Try
from hermes_agent.providers.routing.router import Router
from hermes_agent.providers.vendor import USUAL_LEVEL

__all__ = ["Broker", "CallOpened", "CallSettled", "Ledger"]

# How many of the last messages stay as they are when a conversation is shrunk once, and when it is shrunk twice.
KEPT = (8, 2)
LONGEST = 300
LEFT_OUT = " [...: the rest of this result is left out here; run the call again if it is needed]"


@dataclass(slots=True, kw_only=True)
class _Question:
    """State of a request in progress: failures so far, where it is asked now, the reply as far as it got. `why` is
    the sentence of the failure that led away from the first model; `plan` is the running attempt's, `delay` the
    seconds before the next one; `renewed` are the places whose sign-in got a new key."""

    request: ModelRequest
    place: Place
    draft: Draft = field(default_factory=Draft)
    failed: tuple[Failed, ...] = ()
    prefill: bool = True
    why: str = ""
    answered: bool = False
    plan: PreparedRequest | None = None
    delay: float = 0.0
    renewed: set[Place] = field(default_factory=set)


class Broker:
    """A chain of models with ledger and limits; implements `core.model.Model`."""

    def __init__(self, chain: Chain, ledger: Ledger) -> None:
        self._router = Router(chain, ledger)
        self._clock = chain.clock
        self._usual_effort = chain.settings.reasoning_effort
        # By conversation: how often it was shrunk, and at how many messages.
        self._shrunk: dict[tuple[str, str], tuple[int, int]] = {}
        self._told: set[str] = set()
        self._substitute = ""

    @property
    def name(self) -> str:
        """`vendor/model` of the chain's first model."""
        return self._router.primary.route.name

    @property
    def window(self) -> int:
        """Size of the context window in tokens; for a local server the real one after `prepare` or `ask`."""
        return self._router.current.route.facts.window

    @property
    def sees(self) -> bool:
        """Whether the first model of the chain sees pictures."""
        return self._router.primary.route.facts.images

    async def prepare(self) -> None:
        """Refresh an old sign-in key, and ask a local server for the model's real window."""
        await self._router.primary.prepare()

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `LimitReached` where a limit does not even cover the question."""
        attempts = self._attempts(_Question(request=request, place=await self._router.begin()))
        try:
            async for items in attempts:
                for item in items:
                    yield item
        finally:
            await attempts.aclose()

    async def _attempts(self, question: _Question) -> AsyncGenerator[Sequence[Delta | Reply], None]:
        """One attempt after the other until there is a reply; raises the last error where there is none."""
        while not question.answered:
            if question.delay:
                await self._clock.sleep(question.delay)
            endpoint = self._router.endpoint(question.place)
            attempt = None
            try:
                attempt = await self._attempt(question, endpoint)
                yield self._remarks(question.request, endpoint, question.plan)
                async for items in attempt:
                    yield self._heard(items, question)
                return
            except ProviderError as error:
                again = await self._again(error, question, endpoint)
            finally:
                if attempt is not None:
                    await attempt.aclose()
            yield (*question.draft.held_back(), again)

    async def _attempt(self, question: _Question, endpoint: Endpoint) -> AsyncGenerator[Sequence[Delta] | Reply, None]:
        """The next attempt, ready to be made."""
        question.plan, question.delay = None, 0.0
        question.draft.begin(exact=False)
        await endpoint.prepare()
        plan = question.plan = endpoint.plan(self._to_send(question, endpoint))
        question.draft.begin(exact=plan.request.prefill)
        return endpoint.attempt(plan, len(question.failed) + 1)

    def _heard(self, items: Sequence[Delta] | Reply, question: _Question) -> Sequence[Delta | Reply]:
        if not isinstance(items, Reply):
            return question.draft.hear(items)
        question.answered = True
        return (*self._who_answers(question), *question.draft.end(items))

    async def _again(
        self, error: ProviderError, question: _Question, endpoint: Endpoint
    ) -> Retrying | Continuing | Reply:
        """The next attempt after a failed one; raises the error, with a note why, where there is none."""
        if isinstance(error, ContextTooLong) and not question.request.shrink:
            raise error
        plan = question.plan
        if isinstance(error, ThinkingRefused) and plan is not None:
            plan.compiler.forget()
        if await self._with_another_key(error, question, endpoint):
            return Retrying(reason=str(error), attempt=len(question.failed), delay=0.0)
        keeps = question.draft.broke()
        error.partial = question.draft.words or error.partial
        question.failed += (
            Failed(
                place=question.place,
                kind=type(error),
                tokens=0 if plan is None else plan.tokens,
                retry_after=error.retry_after,
                prefilled=plan is not None and plan.request.prefill,
            ),
        )
        smaller = self._size_when_smaller(type(error), question.request, endpoint)
        decision = await self._router.after(question.failed, left=endpoint.left(question.request), smaller=smaller)
        if isinstance(decision, GiveUp):
            # To a reply that it was given the beginning of, a model that twice adds nothing has nothing to add.
            if keeps and isinstance(error, EmptyReply) and plan is not None and plan.request.prefill:
                question.answered = True
                return _all_was_said(question.draft.words, endpoint)
            error.add_note("; ".join([decision.reason, *self._router.unusable]))
            raise error
        self._prepare_step(decision, question)
        if question.place.station == 0:
            question.why = str(error)
        question.place, question.delay = decision.place, decision.delay
        kind = Continuing if keeps else Retrying
        return kind(reason=str(error), attempt=len(question.failed), delay=decision.delay)

    async def _with_another_key(self, error: ProviderError, question: _Question, endpoint: Endpoint) -> bool:
        """Whether the key of a sign-in that was not taken, as one that was revoked, is renewed; once for an endpoint
        and a question. Raises `AuthRefused` where the person must sign in again."""
        refused = isinstance(error, AuthRefused) and error.status == HTTPStatus.UNAUTHORIZED
        if not refused or endpoint.route.source is None or question.place in question.renewed:
            return False
        question.renewed.add(question.place)
        if not await endpoint.renew(refused=endpoint.route.key):
            return False
        question.failed += (Failed(place=question.place, kind=type(error)),)
        return True

    def _to_send(self, question: _Question, endpoint: Endpoint) -> ModelRequest:
        request = replace(question.request, effort=self._effort(question.request, endpoint.route))
        times, upto = self._shrunk.get((request.session, request.purpose), (0, 0))
        if times:
            request = replace(request, messages=shrunk(request.messages, times, upto))
        if question.draft.words:
            request = going_on(request, question.draft.words, prefill=question.prefill and endpoint.route.prefills)
        return request

    def _effort(self, request: ModelRequest, route: Route) -> str:
        """The level that is wanted: the model's own, where it has one, in place of the usual one."""
        own = route.facts.reasoning_effort
        return own if own is not None and request.effort == self._usual_effort else request.effort

    def _size_when_smaller(self, kind: type[ProviderError], request: ModelRequest, endpoint: Endpoint) -> int | None:
        if kind not in {ContextTooLong, PayloadTooLarge}:
            return None
        times, _ = self._shrunk.get((request.session, request.purpose), (0, 0))
        messages = shrunk(request.messages, times + 1, len(request.messages))
        return endpoint.size(replace(request, messages=messages))

    def _remarks(self, request: ModelRequest, endpoint: Endpoint, plan: PreparedRequest | None) -> list[Remark]:
        """What is said of this request once in a run: what the model cannot do, and which tools it cannot be given."""
        route, said = endpoint.route, limits_for(endpoint.route, request)
        aside = plan.compiler.aside if plan is not None and route.facts.tools else ()
        said += [f"{route.name} is not offered the tool {tool.name}: {tool.reason}." for tool in aside]
        wanted = self._effort(request, route)
        level = route.effort(wanted, tools=bool(request.prefix.tools) and route.facts.tools)
        if level is not None and level != wanted:
            said.append(f"{route.name} has no reasoning level `{wanted}`: `{level}` is asked for.")
        if level is None and wanted not in {USUAL_LEVEL, "none"}:
            said.append(f"{route.name} has no reasoning levels that are known: `{wanted}` is not asked for.")
        return [Remark(text=text) for text in said if self._is_new(text)]

    def _who_answers(self, question: _Question) -> list[Remark]:
        """That another model than the first of the chain answers, and why; that the first does again."""
        name, first = self._router.endpoint(question.place).route.name, self.name
        if question.place.station == 0:
            if self._substitute:
                self._substitute = ""
                return [Remark(text=f"{first} answers again.")]
            return []
        if self._substitute == name:
            return []
        self._substitute = name
        why = question.why or self._router.why(0) or f"{first} cannot"
        return [Remark(text=f"Answered by {name}, because {why.rstrip('.')}.", level="warning")]

    def _is_new(self, text: str) -> bool:
        """Whether this was not said before."""
        new = text not in self._told
        self._told.add(text)
        return new

    def _prepare_step(self, decision: Try, question: _Question) -> None:
        request = question.request
        match decision.step:
            case Step.NO_PREFILL:
                question.prefill = False
            case Step.SHRINK:
                key = (request.session, request.purpose)
                self._shrunk[key] = (self._shrunk.get(key, (0, 0))[0] + 1, len(request.messages))
            case _:
                pass


def _all_was_said(words: str, endpoint: Endpoint) -> Reply:
    """The reply whose rest turned out to be nothing."""
    return Reply(
        message=Message(role=Role.ASSISTANT, parts=(Text(text=words),)),
        stop=StopReason.END,
        usage=Usage(known=False),
        provider=endpoint.route.vendor.name,
        model=endpoint.route.model,
    )


def shrunk(messages: Sequence[Message], times: int, upto: int) -> list[Message]:
    """The messages with the older of the first `upto` shortened: long tool results to their beginning, pictures and
    files to a line."""
    if not times:
        return list(messages)
    old = max(0, upto - KEPT[min(times, len(KEPT)) - 1])
    return [*(_trimmed(message) for message in messages[:old]), *messages[old:]]


def _trimmed(message: Message) -> Message:
    parts = tuple(_smaller(part) for part in message.parts)
    return (
        message
        if all(new is old for new, old in zip(parts, message.parts, strict=True))
        else replace(message, parts=parts)
    )


def _smaller(part: Part) -> Part:
    match part:
        case ToolResult():
            size = sum(len(piece.text) if isinstance(piece, Text) else len(piece.data) for piece in part.parts)
            if size <= LONGEST + len(LEFT_OUT):
                return part
            origin = next((piece.origin for piece in part.parts), None)
            words = Text(text=part.text[:LONGEST] + LEFT_OUT)
            return replace(part, parts=(words if origin is None else replace(words, origin=origin),))
        case Image(data=data) if data:
            return Text(text=f"[A picture ({part.media_type}) that is left out here.]", origin=part.origin)
        case File():
            return Text(text=f"[The file {part.name} that is left out here.]", origin=part.origin)
        case _:
            return part
