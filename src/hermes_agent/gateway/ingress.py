"""Ingress: turns channel events into inbound messages, commands, answers to questions, or refusals."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.app.chats.settings import ChatSettings, GatewaySettings
from hermes_agent.app.command_queue import CommandQueue, bypasses_queue, is_command, parse_command
from hermes_agent.app.operations import serving
from hermes_agent.app.operations.questions import answer_to
from hermes_agent.app.system import System
from hermes_agent.core.chat import CHANGED, SAID, Conversation, Inbound, Principal, Standing, workspace_of
from hermes_agent.core.errors import HermesError, StoreError
from hermes_agent.core.messages import File, Image, Origin, Text
from hermes_agent.core.quick_replies import replies_to
from hermes_agent.gateway.access_control import Access, AccessControl, Refusal, harmless
from hermes_agent.gateway.bounded_cache import BoundedCache
from hermes_agent.gateway.channel import STRANGER, Channel, Heard, Invited, Pressed, Removed, Said, Withdrawn
from hermes_agent.gateway.channel_runtime import ChannelRuntime, Minutes
from hermes_agent.gateway.media import Downloads, parts_of
from hermes_agent.gateway.streaming import Known, Streaming

log = logging.getLogger(__name__)

TOPICS_KNOWN = 2000
TOO_MUCH = "Too many messages in one minute. I read nothing more until it is over: send it again then."
TOO_LONG = "That is too long: {:,} characters at most."
FORWARDED = "(What follows was forwarded: others wrote it.)"
HOUR = 3600.0
STRANGERS = 3
"""Strangers whom the agent goes to meet in an hour where they invite it: so many codes may wait at a time."""
MOST_PASSED_OVER = 1000
"""Groups of which the log says that there is no answer in them."""
DELETED = ":deleted"
"""Ends the id of the mail that takes a message back."""


async def nobody_told(_: Conversation, __: str) -> None:
    """Default listener for lost chats: does nothing."""


class Ingress:
    """Turns a channel event into an inbound message, a command, an answer to a question, or a refusal. `hear`
    returns a short reply for whoever pressed a button."""

    def __init__(
        self,
        runtime: System,
        settings: GatewaySettings,
        access: AccessControl,
        command_queue: CommandQueue,
        drafts: Streaming,
        channel: Callable[[str], Channel | None],
    ) -> None:
        self._runtime = runtime
        self.settings = settings
        self._access = access
        self._command_queue = command_queue
        self._drafts = drafts
        self.removed: Callable[[Conversation, str], Awaitable[None]] = nobody_told
        self.downloads = Downloads(
            channel,
            access.shown,
            lambda said: Path(workspace_of(command_queue.workspace, said.principal, said.conversation)) / "received",
            lambda: self.settings.largest_file_mb,
        )
        command_queue.complete = self.downloads.complete
        self._topics = BoundedCache[str, str](TOPICS_KNOWN)
        self._minutes = Minutes(runtime.clock)
        self._strangers: dict[str, float] = {}
        self._passed_over: set[tuple[str, str]] = set()

    async def hear(self, line: ChannelRuntime, heard: Heard) -> str:
        """Process one event; durable when this returns. Raises `StoreError` if nothing was stored."""
        access = self._access.access(line.kind.name)
        if isinstance(heard, Said | Pressed | Invited):
            self._access.meet(line.kind.name, heard.sender, heard.where)
        match heard:
            case Said():
                await self._said(line, access, heard)
            case Pressed():
                return await self._pressed(line, access, heard)
            case Invited():
                return await self._invited(line, heard)
            case Removed(where=where, reason=reason):
                log.warning("%s: %s", line.kind.name, reason)
                if await was_at_work(self._runtime, access, where):
                    await self.removed(where, reason)
            case Withdrawn():
                await self._withdrawn(line, access, heard)
        return ""

    def forget(self) -> None:
        """Drop cached topics, as another process may have listened meanwhile."""
        self._topics.clear()

    async def _said(self, line: ChannelRuntime, access: Access, said: Said) -> None:
        standing = access.admits(
            said.sender, said.where, addressed=said.addressed or (is_command(said.text) and not said.forwarded)
        )
        if standing is Refusal.STRANGER:
            await serving.meet(self._runtime, self._access.people)  # They may have been let in a moment ago.
            access = self._access.access(line.kind.name)
            standing = access.admits(said.sender, said.where)
        if isinstance(standing, Refusal):
            if standing is Refusal.GROUP and said.addressed and access.standing(said.sender.user, said.sender.groups):
                self._pass_over(line.kind.name, said.where.chat)
            await self._refuse(line, said, standing)
            return
        if said.edited and await self._is_gone(line, said):
            return
        said = self._access.read(line.kind.name, said)
        who = self._access.principal(line.kind.name, said.sender, standing)
        conversation = await self._conversation(access, said, standing)
        inbound = inbound_of(line, said, who, conversation)
        over = self._minutes.count(who.key) - self.settings.messages_per_minute
        if over > 1:
            return  # That was said.
        if over == 1:
            await self._command_queue.answer(inbound, TOO_MUCH)
        elif len(said.text) > self.settings.longest_message:
            await self._command_queue.answer(inbound, TOO_LONG.format(self.settings.longest_message))
        elif is_command(said.text) and not (said.edited or said.forwarded):
            await self._order(access, inbound)
        else:
            await self._words(line, access, said, inbound)

    async def _is_gone(self, line: ChannelRuntime, said: Said) -> bool:
        """Whether the edited message was deleted before it was answered."""
        ids = (said.source_id, f"{said.source_id}{SAID}")
        return any([await serving.was_withdrawn(self._runtime, line.kind.name, each) for each in ids])

    def _pass_over(self, channel: str, chat: str) -> None:
        """Log, once per group, that the agent was mentioned where it does not answer."""
        if (channel, chat) not in self._passed_over and len(self._passed_over) < MOST_PASSED_OVER:
            self._passed_over.add((channel, chat))
            log.info("%s: the group %s is not in gateway.channels.%s.groups: no answer there", channel, chat, channel)

    async def _refuse(self, line: ChannelRuntime, said: Said, why: Refusal) -> None:
        """Send a pairing code to a stranger in a private chat; ignore everybody else."""
        if why is not Refusal.STRANGER or said.edited:
            return
        name = harmless(said.sender.name)
        code = await serving.ask_pairing(self._runtime, line.kind.name, said.sender.user, name)
        if code:
            text = (
                f"I do not know you yet. If my owner runs `hermes pairing approve {code}` within an hour, "
                "we can talk here."
            )
            nobody = Principal(platform=line.kind.name, user=said.sender.user)
            await self._command_queue.answer(inbound_of(line, said, nobody, said.where), text)

    async def _order(self, access: Access, inbound: Inbound) -> None:
        name, is_known = parse_command(inbound.text)
        standing = inbound.principal.standing
        if is_known and not access.may(standing, name):
            await self._command_queue.answer(inbound, f"You may not use `/{name}` here.")
        elif not is_known and standing is Standing.GUEST:
            await self._command_queue.answer(inbound, f"There is no command `/{name}`. See `/help`.")
        elif name == "stop":
            await self._command_queue.stop(inbound, fetched=self.downloads.stop(inbound.conversation))
        elif is_known and bypasses_queue(name):
            await self._command_queue.do_at_once(inbound)
            self._topics.pop(replace(inbound.conversation, topic="").key)
        else:
            await self._command_queue.enqueue(inbound)

    async def _words(self, line: ChannelRuntime, access: Access, said: Said, inbound: Inbound) -> None:
        """Submit text: a message for the conversation's session, or the answer to its run's question."""
        chat, hermes = access.chat(said.where.chat), self._runtime.hermes
        record = await hermes.open_session(
            inbound.conversation,
            inbound.principal,
            workspace=self._command_queue.workspace,
            model=self._access.people.model(said.where),
        )
        busy = chat.busy or access.settings.busy
        answers = ""
        if not (said.media or said.forwarded):
            is_private = inbound.conversation.is_private
            answers, answer = await answer_to(self._runtime, record.id, said.text, is_private=is_private)
            said = replace(said, text=answer) if answers else said
        is_bare = not (answers or said.media or said.forwarded or said.edited or said.quoted)
        if is_bare and await self._command_queue.take_reply(inbound, record):
            return
        parts = self._parts(replace(said, quoted=None) if answers else said, inbound, chat)
        message = replace(inbound, parts=parts, busy=busy, answers=answers)
        self._drafts.know(record.id, Known(to=inbound.conversation, line=line, streams=access.settings.stream))
        # Files come, and hooks answer, in the queue of the conversation: nobody else waits for them.
        is_slow = is_hooked(self._runtime) or any(isinstance(part, File) for part in parts)
        if is_slow or self._command_queue.wait(inbound.conversation):
            await self._command_queue.enqueue(replace(message, answers=""))
            return
        try:
            await hermes.submit(message, record.id)
        except StoreError:
            raise
        except HermesError as error:
            await self._command_queue.answer(inbound, str(error))

    def _parts(self, said: Said, inbound: Inbound, chat: ChatSettings) -> tuple[Text | Image | File, ...]:
        origin = Origin.GUEST if said.forwarded else Origin(inbound.principal.standing)
        name = f"[{inbound.principal.name}] " if inbound.conversation.is_shared else ""
        changed = CHANGED if said.edited else ""
        hints = (f"({chat.hint})" if chat.hint else "", FORWARDED if said.forwarded else "")
        notes = tuple(Text(text=hint, origin=Origin.RUNTIME) for hint in hints if hint)
        words = (Text(text=f"{name}{changed}{said.text}", origin=origin),) if said.text or name else ()
        shown = partial(self._access.shown, inbound.conversation.platform)
        around = (*notes, *parts_of(said, origin))
        hidden = (replace(part, text=shown(part.text)) if isinstance(part, Text) else part for part in around)
        return (*hidden, *words)

    async def _withdrawn(self, line: ChannelRuntime, access: Access, deleted: Withdrawn) -> None:
        """Withdraw a deleted message, so that it is not answered."""
        if not access.answers_in(deleted.where):
            return
        note = Inbound(
            source=line.kind.name,
            source_id=f"{deleted.source_id}{DELETED}",
            principal=Principal(platform=line.kind.name, user=deleted.by),
            conversation=deleted.where,
            parts=(),
            received=self._runtime.clock.now(),
            withdraws=deleted.source_id,
        )
        for lane in await self._runtime.hermes.withdraw(note, moderated=deleted.moderates):
            log.info("%s: a message was deleted before it was answered", line.kind.name)
            self._command_queue.on_withdrawn(lane)

    async def _invited(self, line: ChannelRuntime, invited: Invited) -> str:
        """Accept an invitation from someone who may speak here or may request a code; ignore other strangers."""
        await serving.meet(self._runtime, self._access.people)
        access = self._access.access(line.kind.name)
        known = access.standing(invited.sender.user, invited.sender.groups)
        may_ask = access.settings.pairing and invited.where.chat_kind == "dm"
        word = known.value if known else STRANGER if may_ask and self._knocks(line, invited) else ""
        level = logging.INFO if word else logging.DEBUG  # Those in vain are told again and again.
        log.log(level, "%s: invited %sby %s", line.kind.name, "" if word else "in vain ", invited.sender.user)
        return word

    def _knocks(self, line: ChannelRuntime, invited: Invited) -> bool:
        """Whether a stranger is within the hourly limit, each counted once."""
        now, who = self._runtime.clock.monotonic(), f"{line.kind.name}:{invited.sender.user}"
        self._strangers = {key: at for key, at in self._strangers.items() if now - at < HOUR}
        if who in self._strangers or len(self._strangers) >= STRANGERS:
            return False
        self._strangers[who] = now
        return True

    async def _pressed(self, line: ChannelRuntime, access: Access, pressed: Pressed) -> str:
        """Submit a button's answer, if the person may give it."""
        standing = access.admits(pressed.sender, pressed.where)
        if isinstance(standing, Refusal):
            return "This question is for someone else."
        slot = await serving.slot_at(self._runtime, pressed.slot)
        place = (pressed.where.platform, pressed.where.chat)
        if slot is None or (slot.to.platform, slot.to.chat) != place:
            return "This question is no longer open."
        content = slot.content
        if not content.question or pressed.choice >= len(content.buttons):
            return "That was answered already."
        who = self._access.principal(line.kind.name, pressed.sender, standing)
        inbound = Inbound(
            source=line.kind.name,
            source_id=pressed.source_id,
            principal=who,
            conversation=slot.to,
            parts=(Text(text=content.buttons[pressed.choice].value, origin=Origin(standing)),),
            received=pressed.at,
            answers=content.question,
        )
        try:
            if replies_to(content.question):
                await self._command_queue.press(inbound, slot.session)
            else:
                await self._runtime.hermes.submit(inbound, slot.session)
        except StoreError:
            raise
        except HermesError as error:
            return str(error)
        return content.buttons[pressed.choice].label

    async def _conversation(self, access: Access, said: Said, standing: Standing) -> Conversation:
        base = access.conversation(said.where, said.sender, standing)
        if (topic := self._topics.get(base.key)) is None:
            topic = self._topics.put(base.key, await serving.topic_of(self._runtime, base))
        return replace(base, topic=topic)


def inbound_of(line: ChannelRuntime, said: Said, who: Principal, conversation: Conversation) -> Inbound:
    """The inbound message with text only."""
    # A new text of a message is another message; told twice, it is still one. Its stamp may be a whole second.
    mark = hashlib.sha256(f"{said.edited} {said.text}".encode())
    changed = f":{mark.hexdigest()[:12]}" if said.edited else ""
    return Inbound(
        source=line.kind.name,
        source_id=f"{said.source_id}{changed}",
        principal=who,
        conversation=conversation,
        parts=(Text(text=said.text, origin=Origin(who.standing)),),
        received=said.at,
        replaces=said.source_id if said.edited else "",
        title=said.title,
    )


def is_hooked(runtime: System) -> bool:
    """Whether a hook filters inbound messages."""
    return runtime.hooks is not None and runtime.hooks.waits_for("message:received")


async def was_at_work(runtime: System, access: Access, where: Conversation) -> bool:
    """Whether the agent was in use in a chat, so that its removal matters: strangers add and remove it at will."""
    if where.chat_kind != "dm" and access.answers_in(where):
        return True
    # Matrix may not tell any more that it was a chat with one person, and not who that was.
    return await serving.has_spoken_in(runtime, where)
