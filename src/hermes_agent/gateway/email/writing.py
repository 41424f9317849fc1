"""A message of the agent as a mail: threaded, in plain text and HTML, marked as written by a program."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.outbound import Attachment
from hermes_agent.gateway.channel import Part
from hermes_agent.gateway.email.reading import OWN_IDS
from hermes_agent.gateway.html import html

MOST_REFERENCES = 20
LONGEST_SUBJECT = 500
"""Characters of an answered subject that are said again; a sender may write a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """The mail that is answered: its subject, and the Message-IDs that lead to it, its own last (none: a new one)."""

    subject: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who writes: the agent's own address and the name beside it."""

    address: str
    name: str

    def message_id(self, key: str) -> str:
        """The Message-ID of what is sent under a key, without brackets: the same for the same key."""
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        return f"{OWN_IDS}{digest}@{self.address.partition('@')[2]}"

    def wrote(self, message_id: str) -> bool:
        """Whether a Message-ID is one of those."""
        return message_id.startswith(OWN_IDS) and message_id.endswith(f"@{self.address.partition('@')[2]}")


def written(author: Author, to: Sequence[str], thread: Thread, part: Part, *, id_: str, at: float) -> EmailMessage:
    """The mail, to which its file is still to be added."""
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
    """Add a file to a mail."""
    kind, _, subkind = file.media_type.partition("/")
    mail.add_attachment(content, maintype=kind, subtype=subkind or "octet-stream", filename=file.name)


def subject_of(answered: str, text: str, name: str) -> str:
    """`Re:` of what is answered, or for a new thread how the text begins."""
    line = " ".join(answered.split())[:LONGEST_SUBJECT]
    if line:
        return line if line.lower().startswith("re:") else f"Re: {line}"
    first = next((each.replace("**", "").strip("#*_> `") for each in text.split("\n") if each.strip("#*_> `")), "")
    return " ".join(first.split())[:70] or f"A message from {name}"


def as_html(text: str) -> str:
    """Markdown as the HTML of a mail."""
    return f'<html><body style="font-family:sans-serif">{html(text)}</body></html>'
