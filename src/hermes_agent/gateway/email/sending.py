"""Sends mail over SMTP, and composes it; errors say whether the mail may have been sent."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr
from typing import TYPE_CHECKING

from hermes_agent.core.chat import Attachment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, Part, TokenRefused
from hermes_agent.gateway.email.mailbox import Address
from hermes_agent.gateway.email.reading import OWN_IDS
from hermes_agent.gateway.text.markdown import html
from hermes_agent.host.late import libraries

if TYPE_CHECKING:
    import aiosmtplib

GREYLISTED = 60.0
"""Seconds after which a server that says "later" is asked again (RFC 6647 speaks of a minute and more)."""
ANSWER_SECONDS = 50.0
CLOSING = 421


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """SMTP client that sends mail from the address `own`."""

    address: Address
    user: str
    password: str
    own: str

    async def send(self, to: Sequence[str], content: bytes) -> None:
        """Send a mail. Raises `ChannelError` as `Channel.send` in `gateway/channel.py`."""
        library = libraries.aiosmtplib
        async with self._connected() as client:
            try:
                await client.mail(self.own)
                await self._name(client, to)
            except library.SMTPResponseException as error:
                raise refused(error.code, error.message) from error
            except (library.SMTPException, OSError) as error:
                raise NotNow(f"The mail server broke off: {error}") from error
            try:
                await client.data(content)
            except library.SMTPDataError as error:
                raise refused(error.code, error.message) from error
            except (library.SMTPException, OSError) as error:
                raise OutcomeUnknown(f"The mail server did not say whether it took the mail: {error}") from error

    async def check(self) -> None:
        """Connect and log in; raises what sending would."""
        async with self._connected():
            pass

    async def _name(self, client: aiosmtplib.SMTP, to: Sequence[str]) -> None:
        """Send the recipients; succeeds if the server accepts at least one."""
        last: aiosmtplib.SMTPResponseException | None = None
        taken = 0
        for address in to:
            try:
                await client.rcpt(address)
                taken += 1
            except libraries.aiosmtplib.SMTPRecipientRefused as error:
                last = error
        if not taken and last is not None:
            raise last

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[aiosmtplib.SMTP]:
        library, where = libraries.aiosmtplib, self.address
        client: aiosmtplib.SMTP = library.SMTP(
            hostname=where.host,
            port=where.port,
            use_tls=where.security == "tls",
            start_tls=where.security == "starttls",
            tls_context=None if where.security == "none" else ssl.create_default_context(),
            timeout=ANSWER_SECONDS,
            local_hostname="[127.0.0.1]",  # RFC 5321, 4.1.3: what this machine is called is nobody's business.
        )
        try:
            await client.connect()
            await client.ehlo()
            if client.supports_extension("auth"):
                await client.login(self.user, self.password)
        except library.SMTPAuthenticationError as error:
            client.close()
            raise refused_login(error.code, self.user, where.host) from error
        except (library.SMTPException, OSError) as error:
            client.close()
            raise NotNow(f"The mail server {where.host}:{where.port} cannot be reached: {error}") from error
        try:
            yield client
        finally:
            with suppress(library.SMTPException, OSError):
                await client.quit()
            client.close()


def refused(code: int, message: str) -> ChannelError:
    """Map an SMTP reply code to an error: 4xx temporary, 5xx permanent (RFC 5321, 4.2.1)."""
    text = f"The mail server refuses it: {code} {' '.join(message.split())[:200]}"
    if code == CLOSING:
        return NotNow(text)
    if code in (530, 534, 535):
        return TokenRefused(text)
    if 400 <= code < 500:
        return NotNow(text, retry_after=GREYLISTED)
    if 500 <= code < 600:
        return NeverHere(text)
    return OutcomeUnknown(text)


def refused_login(code: int, user: str, host: str) -> ChannelError:
    """Map a login error: 4xx is a server problem, 5xx a wrong password."""
    if code < 500:
        return NotNow(f"{host} cannot check the password now ({code}).")
    return TokenRefused(f"The mail server {host} refuses the password of {user} (`EMAIL_PASSWORD`).")


MOST_REFERENCES = 20
LONGEST_SUBJECT = 500
"""Characters of an answered subject that are said again; a sender may write a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Mail thread to answer: its subject and Message-IDs, that of the answered mail last (empty: a new thread)."""

    subject: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The agent's own address and display name."""

    address: str
    name: str

    def message_id(self, key: str) -> str:
        """The deterministic Message-ID for a key, without brackets."""
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        return f"{OWN_IDS}{digest}@{self.address.partition('@')[2]}"

    def wrote(self, message_id: str) -> bool:
        """Whether a Message-ID is the agent's own."""
        return message_id.startswith(OWN_IDS) and message_id.endswith(f"@{self.address.partition('@')[2]}")


def written(author: Author, to: Sequence[str], thread: Thread, part: Part, *, id_: str, at: float) -> EmailMessage:
    """Compose the mail, without its attachment."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = formataddr((author.name, author.address))
    mail["To"] = ", ".join(to)
    mail["Subject"] = subject_of(thread.subject, part.text, author.name)
    mail["Date"] = format_datetime(datetime.fromtimestamp(at, UTC))
    mail["Message-ID"] = f"<{id_}>"
    if thread.ids:
        mail["In-Reply-To"] = f"<{thread.ids[-1]}>"
        kept = thread.ids if len(thread.ids) <= MOST_REFERENCES else (thread.ids[0], *thread.ids[1 - MOST_REFERENCES :])
        mail["References"] = " ".join(f"<{each}>" for each in kept)
    # RFC 3834: no program answers this, so that two of them never talk to each other for ever.
    mail["Auto-Submitted"] = "auto-replied" if thread.ids else "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(part.text or (part.file.name if part.file else ""), cte="quoted-printable")
    mail.add_alternative(as_html(part.text), subtype="html", cte="quoted-printable")
    return mail


def enclose(mail: EmailMessage, file: Attachment, content: bytes) -> None:
    """Attach a file."""
    kind, _, subkind = file.media_type.partition("/")
    mail.add_attachment(content, maintype=kind, subtype=subkind or "octet-stream", filename=file.name)


def subject_of(answered: str, text: str, name: str) -> str:
    """`Re:` plus the answered subject, or the beginning of the text for a new thread."""
    line = " ".join(answered.split())[:LONGEST_SUBJECT]
    if line:
        return line if line.lower().startswith("re:") else f"Re: {line}"
    first = next((each.replace("**", "").strip("#*_> `") for each in text.split("\n") if each.strip("#*_> `")), "")
    return " ".join(first.split())[:70] or f"A message from {name}"


def as_html(text: str) -> str:
    """Render Markdown as the HTML of a mail."""
    return f'<html><body style="font-family:sans-serif">{html(text)}</body></html>'
