"""Mixture of agents: asks several member models in parallel, and an aggregator model answers from their replies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import EmptyReply, HermesError, StoreError
from hermes_agent.core.messages import Delta, Message, Model, ModelRequest, Origin, Remark, Reply, Role, said
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.settings import MixtureSettings

log = logging.getLogger(__name__)

PURPOSE = "mixture"
"""What the members' rows in the ledger are for."""

ASKED_FOR = frozenset({"chat", "test"})
"""The purposes for which the members are asked; a summary, say, is the aggregator's alone."""

OPINIONS = """\
[Before you answer, {count} other models were asked the same, without tools; the person does not see this. Weigh what \
they say: any of it may be wrong. Take what holds, and answer, or call tools, yourself.

{opinions}]"""
OPINION = "Model {number}:\n{words}"
MISSING = "{name} had no opinion: {reason}"
ALONE = "No member of {name} had an opinion; {aggregator} answers alone."


class Mixture:
    """Several models as one, for one run; implements `core.model.Model`. The members' replies stay behind the message
    that they answer until the run ends, so that the beginning of each request does not change. `unusable` are members
    that cannot be asked, with the reason."""

    def __init__(
        self,
        name: str,
        *,
        members: Sequence[Broker],
        aggregator: Broker,
        settings: MixtureSettings,
        clock: Clock,
        unusable: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._name = name
        self._members = members
        self._aggregator = aggregator
        self._settings = settings
        self._clock = clock
        self._missing = [MISSING.format(name=name, reason=reason) for name, reason in unusable]
        # What was said, each with the number of messages before it; of one run and purpose.
        self._said: list[tuple[int, Message]] = []
        self._about = ("", "")

    @property
    def name(self) -> str:
        """As a person writes it: `moa/name`."""
        return self._name

    @property
    def window(self) -> int:
        """The aggregator's window in tokens; a member for which a conversation is too long is left out."""
        return self._aggregator.window

    @property
    def sees(self) -> bool:
        """Whether the aggregator sees pictures."""
        return self._aggregator.sees

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`."""
        if self._wants_opinions(request):
            for remark in await self._take_opinions(request):
                yield remark
        request = replace(request, messages=self._with_opinions(request.messages))
        async with aclosing(self._aggregator.ask(request)) as items:
            async for item in items:
                yield item

    def _wants_opinions(self, request: ModelRequest) -> bool:
        """Whether the members are to be asked; never what is not the conversation itself, like a summary."""
        about = (request.run, request.purpose)
        if about != self._about or any(place > len(request.messages) for place, _ in self._said):
            self._about, self._said = about, []
        if request.purpose not in ASKED_FOR or request.prefill or not request.use_tools:
            return False
        return self._settings.every_turn or not self._said or _is_heard(request.messages, self._said[-1][0])

    async def _take_opinions(self, request: ModelRequest) -> list[Remark]:
        """Ask every member; what could not be had is told."""
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._opinion(request, nth)) for nth in range(len(self._members))]
        given = []
        for task in asked:
            if isinstance(result := task.result(), StoreError):
                raise result
            given.append(result)
        opinions = [words for words, _ in given if words]
        told = [*self._missing, *(missing for _, missing in given if missing)]
        self._missing.clear()
        remarks = [Remark(text=missing, level="warning") for missing in told]
        if not opinions:
            alone = ALONE.format(name=self._name, aggregator=self._aggregator.name)
            return [*remarks, Remark(text=alone, level="warning")]
        listed = [OPINION.format(number=number, words=words) for number, words in enumerate(opinions, 1)]
        words = OPINIONS.format(count=len(opinions), opinions="\n\n".join(listed))
        self._said.append((len(request.messages), said(words, Origin.MODEL)))
        return remarks

    async def _opinion(self, request: ModelRequest, nth: int) -> tuple[str, str] | StoreError:
        """A member's words, or why there are none; an error that ends the run is given, so that it comes out alone."""
        member, now = self._members[nth], self._clock.monotonic()
        until = now + self._settings.seconds
        question = replace(
            request,
            call_id=f"{request.call_id}m{nth + 1}",
            purpose=PURPOSE,
            deadline=until if request.deadline is None else min(until, request.deadline),
            max_output=self._settings.max_output,
            use_tools=False,
            shrink=False,
        )
        try:
            return await _words(member, question), ""
        except StoreError as error:
            return error
        except HermesError as error:
            log.warning("%s had no opinion: %s", member.name, error)
            return "", MISSING.format(name=member.name, reason=error)

    def _with_opinions(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation with what was said behind the messages that it was about."""
        if not self._said:
            return messages
        whole = list(messages)
        for place, message in reversed(self._said):
            whole.insert(place, message)
        return whole


def _is_heard(messages: Sequence[Message], since: int) -> bool:
    """Whether a person has said something since."""
    return any(message.role is Role.USER and not message.is_runtime for message in messages[since:])


async def _words(model: Model, request: ModelRequest) -> str:
    async with aclosing(model.ask(request)) as items:
        async for item in items:
            if isinstance(item, Reply) and (words := item.message.text.strip()):
                return words
    raise EmptyReply("It said nothing.", model=model.name)
