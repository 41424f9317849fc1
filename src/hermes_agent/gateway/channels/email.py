"""Email channel: receives over IMAP with IDLE, sends over SMTP; one conversation per thread."""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.bounded_cache import BoundedCache
from hermes_agent.gateway.channel import (
    Abilities,
    Channel,
    Hear,
    Kind,
    Media,
    MessageGone,
    Needs,
    NeverHere,
    NotNow,
    Option,
    Pace,
    Part,
    Quoted,
    Said,
    Sender,
)
from hermes_agent.gateway.dispatcher import Dispatcher, dispatching
from hermes_agent.gateway.email.mailbox import Address, Login, Mailbox
from hermes_agent.gateway.email.reading import HASHED, MOST_PEOPLE, Enclosed, Mail, Unreadable, is_address, read_apart
from hermes_agent.gateway.email.sending import Author, Post, Thread, enclose, written
from hermes_agent.gateway.service import bytes_of
from hermes_agent.host.http import LOOPBACK_HOSTS
from hermes_agent.host.late import libraries

log = logging.getLogger(__name__)

PLATFORM = "email"
LARGEST_MAIL = 30_000_000
"""Bytes of a mail that is read whole (Gmail takes 25 MB of files, which mail makes a third longer)."""
BEGINNING = 400_000
"""Bytes that are read of a larger one before anything else; its files are fetched when it is durable."""
SENDER = re.compile(rb"^From:[^\r\n]*?([\w.+-]{1,64}@[\w.-]{1,255})", re.MULTILINE | re.IGNORECASE | re.ASCII)
REST = "the rest of this mail.txt"
FILES_KNOWN = 20
"""Small mails whose files are kept in memory until they are asked for."""
DAYS = 3
"""Days back that unread mail is looked for when the gateway starts."""
THREADS_KNOWN = 500
UNCHECKED = "who writes is not checked, anybody can pass for the owner: set options.authserv_id"
REPLY = re.compile(r"^(?:\s*(?:re|aw|antw|sv|vs|odp|rif)\s*:)+\s*", re.IGNORECASE)
"""How programs of mail begin the subject of an answer."""
SECURITIES = ("tls", "starttls", "none")


class EmailChannel(Channel):
    """`Channel` adapter for one mailbox."""

    def __init__(self, author: Author, incoming: tuple[Address, Login], post: Post, server: str, needs: Needs) -> None:
        self._author = author
        self._incoming = incoming
        self._post = post
        self._server = server
        self._clock = needs.clock
        self._note = needs.note
        self._threads = BoundedCache[tuple[str, str], Thread](THREADS_KNOWN)
        self._files = BoundedCache[str, tuple[Enclosed, ...]](FILES_KNOWN)

    async def listen(self, hear: Hear) -> None:
        self._note("" if self._server else UNCHECKED)
        taken: dict[str, bool] = {}
        async with self._mailbox() as box, dispatching() as dispatcher:
            while True:
                await self._look(box, dispatcher, hear, taken)

    async def _look(self, box: Mailbox, dispatcher: Dispatcher, hear: Hear, taken: dict[str, bool]) -> None:
        """Process unread mail, then wait for more unless some is still in progress."""
        since = datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC) - datetime.timedelta(days=DAYS)
        for uid in await box.unread(since.date()):
            if uid not in taken:
                taken[uid] = False
                await self._take(box, uid, dispatcher, hear, taken)
        settled = await dispatcher.settled()
        for uid in [each for each, is_taken in taken.items() if is_taken]:
            await box.mark_read(uid)
            del taken[uid]
        if settled:
            await box.wait()

    async def _take(self, box: Mailbox, uid: str, dispatcher: Dispatcher, hear: Hear, taken: dict[str, bool]) -> None:
        """Process one mail (of a large one only the beginning) and mark it read afterwards."""
        size = await box.size(uid)
        small = size <= BEGINNING
        known = await (box.raw(uid) if small else box.head(uid, BEGINNING))

        async def job() -> None:
            raw = known if small else await self._raw(uid, BEGINNING)
            try:
                mail = await read_apart(raw, self._author.address, self._server)
                if reason := self._refusal(mail):
                    raise Unreadable(reason)
            except Unreadable as error:
                log.info("a mail was passed over: %s", error)
            else:
                await hear(self._said(mail, uid, size))
            taken[uid] = True

        sender = SENDER.search(known)
        await dispatcher.put(sender[1].decode().lower() if sender else "", job)

    def _refusal(self, mail: Mail) -> str:
        """Why a mail is ignored; empty if it is accepted."""
        if mail.sender == self._author.address or self._author.wrote(mail.id):
            return "it is an own mail"
        if mail.automatic:
            return f"it is automatic ({mail.automatic})"
        if len(mail.people) > MOST_PEOPLE:
            return f"it went to {len(mail.people)} people"
        if not mail.vouched:
            return f"{self._server} does not vouch for its sender"
        return ""

    def _said(self, mail: Mail, uid: str, size: int) -> Said:
        where = _where(mail)
        self._threads.put((where.chat, where.thread), Thread(subject=mail.subject, ids=_line(mail)))
        first = not mail.references and mail.subject and not mail.text.startswith("/")
        subject, quoted = (
            (mail.subject, mail.quoted) if not mail.is_forwarded else ("", f"{mail.subject}\n\n{mail.quoted}")
        )
        title = REPLY.sub("", mail.subject) if mail.references else ""
        if size <= BEGINNING:
            self._files.put(mail.id, mail.files)
            media = tuple(_media(each, (uid, mail.id, at, 0)) for at, each in enumerate(mail.files))
        else:
            whole = Enclosed(name="the rest of this mail", media_type="message/rfc822", content=b"")
            media = (_media(whole, (uid if size <= LARGEST_MAIL else "", mail.id, -1, len(mail.text))),)
        return Said(
            source_id=mail.id,
            where=where,
            sender=Sender(user=mail.sender, name=mail.name, groups=(f"@{mail.sender.partition('@')[2]}",)),
            text=f"{subject}\n\n{mail.text}".strip() if first else mail.text,
            at=mail.at or self._clock.now(),
            media=media,
            addressed=mail.addressed,
            quoted=Quoted(text=quoted) if quoted else None,
            title=title,
            named=(*mail.people, *mail.named),
        )

    async def fetch(self, media: Media, most: int) -> bytes | Sequence[tuple[Media, bytes]]:  # noqa: ARG002  mails are small
        uid, id_, number, told = json.loads(media.reference)
        if not uid:
            raise NeverHere(f"The mail is larger than {LARGEST_MAIL // 1_000_000} MB; only its beginning was read.")
        files = self._files.get(id_)
        if files is None:
            try:
                mail = await read_apart(await self._raw(uid), self._author.address, self._server)
            except Unreadable as error:
                raise NeverHere(str(error)) from error
            if mail.id != id_ and not id_.startswith(HASHED):
                raise NeverHere("The mail is not in its folder any more.")
            rest = mail.text[told:].encode("utf-8", "replace") if number < 0 else b""
            files = (*mail.files, *((Enclosed(name=REST, media_type="text/plain", content=rest),) if rest else ()))
        return files[number].content if number >= 0 else [(_media(each), each.content) for each in files]

    async def _raw(self, uid: str, most: int = 0) -> bytes:
        """Download a large mail over a separate connection, so that nothing else waits."""
        async with self._mailbox() as box:
            return await box.raw(uid, most)

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        people = [each for each in to.chat.split(",") if each != self._author.address]
        if not people or not all(map(is_address, people)):
            raise NeverHere(f"{to.chat or 'Nothing'} is not a mail address.")
        thread = await self._thread(to, part.answers)
        id_ = self._author.message_id(key)
        at, content = self._clock.now(), await bytes_of(part.file) if part.file is not None else b""

        def whole() -> bytes:
            mail = written(self._author, people, thread, part, id_=id_, at=at)
            if part.file is not None:
                enclose(mail, part.file, content)
            return mail.as_bytes()

        await self._post.send(people, await asyncio.to_thread(whole))
        return id_

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:  # noqa: ARG002  the Protocol's shape
        raise MessageGone("A mail that was sent cannot be changed.")

    async def delete(self, to: Conversation, receipt: str) -> None:  # noqa: ARG002  the Protocol's shape
        raise MessageGone("A mail that was sent cannot be deleted.")

    async def check(self) -> str:
        async with self._mailbox():
            pass
        await self._post.check()
        return self._post.own

    @asynccontextmanager
    async def _mailbox(self) -> AsyncIterator[Mailbox]:
        box = Mailbox(*self._incoming)
        try:
            await box.open()
            yield box
        finally:
            await box.close()

    async def _thread(self, to: Conversation, answers: str) -> Thread:
        """The thread to reply in: cached, or looked up in the mailbox; otherwise a reply to the thread's first mail."""
        known = self._threads.get((to.chat, to.thread))
        if not to.thread or (known is not None and answers in (*known.ids[-1:], "")):
            return known or Thread()
        try:
            found = await self._looked_up(answers or to.thread, to)
        except NotNow:
            found = None
        return found or Thread(ids=tuple(dict.fromkeys(filter(None, (to.thread, answers)))))

    async def _looked_up(self, id_: str, to: Conversation) -> Thread | None:
        async with self._mailbox() as box:
            uids = await box.with_header("Message-ID", f"<{id_}>")
            if id_ == to.thread:
                uids += await box.with_header("References", f"<{id_}>")
            for uid in reversed(uids):
                mail = await self._head(box, uid)
                if mail is not None and _where(mail).chat == to.chat:
                    thread = Thread(subject=mail.subject, ids=_line(mail))
                    self._threads.put((to.chat, to.thread), thread)
                    return thread
        return None

    async def _head(self, box: Mailbox, uid: str) -> Mail | None:
        with suppress(Unreadable):
            return await read_apart(await box.head(uid, BEGINNING), self._author.address)
        return None


def _where(mail: Mail) -> Conversation:
    """The conversation of a mail: its thread with a person or a fixed set of people, so that later participants see
    nothing earlier."""
    if len(mail.people) > 1:
        return Conversation(platform=PLATFORM, chat_kind="group", chat=",".join(sorted(mail.people)), thread=mail.root)
    return Conversation(platform=PLATFORM, chat=mail.sender, thread=mail.root)


def _line(mail: Mail) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*mail.references, mail.id)))


def _media(file: Enclosed, reference: tuple[str, str, int, int] | None = None) -> Media:
    """A file reference: the mail's UID and id, the file's number (-1: all files, and the text after an offset)."""
    mark = json.dumps(reference)
    return Media(name=file.name, media_type=file.media_type, size=len(file.content), reference=mark)


def _server(options: Mapping[str, str], name: str) -> Address:
    host, port, security = (options[f"{name}_{each}"] for each in ("host", "port", "security"))
    where = f"gateway.channels.email.options.{name}"
    if not host:
        raise ConfigError(f"{where}_host is missing: the name of your mail server.")
    if not port.isdecimal():
        raise ConfigError(f"{where}_port is not a number: {port}.")
    if security not in SECURITIES:
        raise ConfigError(f"{where}_security is one of {', '.join(SECURITIES)}.")
    if security == "none" and host not in LOOPBACK_HOSTS:
        raise ConfigError(f"{where}_security may be `none` only for a server on this machine.")
    return Address(host=host, port=int(port), security=security)


def make(needs: Needs) -> Channel:
    """Factory of the email channel. Raises `ConfigError`."""
    try:
        libraries.imap_tools, libraries.aiosmtplib, libraries.markdown_it  # noqa: B018 - whether they are here
    except ImportError as error:
        raise ConfigError("The email channel needs more: pip install 'hermes-runtime[email]'.") from error
    options = {name: needs.options.get(name, option.default) for name, option in OPTIONS.items()}
    own, password = options["address"].strip().lower(), needs.secret("EMAIL_PASSWORD")
    if not is_address(own):
        raise ConfigError("gateway.channels.email.options.address is missing: the agent's own mail address.")
    if not password:
        raise ConfigError("EMAIL_PASSWORD is missing: the mailbox's password, or an app password.")
    user = options["user"] or own
    login = Login(user=user, password=password, folder=options["folder"])
    post = Post(address=_server(options, "smtp"), user=user, password=password, own=own)
    author = Author(address=own, name=options["name"])
    return EmailChannel(author, (_server(options, "imap"), login), post, options["authserv_id"].strip(), needs)


OPTIONS = {
    "address": Option(doc="The agent's own mail address. Give it a mailbox of its own.", asked=True),
    "name": Option(doc="The name beside that address.", default="Hermes"),
    "user": Option(doc="The name to log in with, where it is not the address."),
    "imap_host": Option(doc="The server that holds the mail.", asked=True),
    "imap_port": Option(doc="Its port.", default="993"),
    "imap_security": Option(doc="`tls`, `starttls`, or `none` for a server on this machine.", default="tls"),
    "folder": Option(doc="The folder that is read.", default="INBOX"),
    "smtp_host": Option(doc="The server that takes mail.", asked=True),
    "smtp_port": Option(doc="Its port (587 with `starttls`).", default="465"),
    "smtp_security": Option(doc="`tls`, `starttls`, or `none` for a server on this machine.", default="tls"),
    "authserv_id": Option(
        doc="What your mail server calls itself in `Authentication-Results`. Where it is set, mail whose sender that "
        "server does not vouch for is passed over."
    ),
}

CHANNEL = Kind(
    name=PLATFORM,
    title="Email",
    abilities=Abilities(longest_message=100_000, threads=True, largest_file=18_000_000, fences=True),
    pace=Pace(every=0.5, chat=5.0, group=5.0),
    secrets=("EMAIL_PASSWORD",),
    account=("address",),
    person=(r"[^@\s]+@[^@\s]+|@?[^@\s]+", "it is an address"),
    setup=(
        "Make a mailbox for the agent alone; its unread mail is what the agent answers.",
        "Where the provider has app passwords (Gmail, iCloud, Fastmail), make one: that is the EMAIL_PASSWORD.",
        "Say where it is: `hermes config set gateway.channels.email.options.address ADDRESS`; imap_host and smtp_host "
        "likewise.",
        "Look into a received mail for the line `Authentication-Results: NAME;` and set authserv_id to that NAME.",
        "Your id is the address that you write from.",
    ),
    make=make,
    options=OPTIONS,
    hash_ids=True,
)
