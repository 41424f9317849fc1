"""Mail as a platform on loopback: one mailbox over IMAP, and SMTP that shows what the agent wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import SMTP
from email.utils import localtime
from functools import partial

from hermes_agent.testing.platform import TITLE, Chats, Held, Shown
from tests.doubles.imap import Folder, imap_server
from tests.doubles.smtp import Desk, Taken, smtp_server

OWN = "hermes@agent.test"


class MailPlatform(Held):
    """People with mail addresses who write to the agent (a `Double`). A chat is the addresses in it, joined by
    commas. `shown` is what was handed over, one by one, also where one Message-ID came twice. What they say while
    `holding` is kept back in `late`."""

    def __init__(self) -> None:
        super().__init__()
        self.chats = Chats()
        self.folder = Folder()
        self.taken: list[Taken] = []
        self.shown: list[Shown] = []
        self.imap_port = 0
        self.smtp_port = 0

    @property
    def options(self) -> dict[str, str]:
        """The settings of a channel to here."""
        return {
            "address": OWN,
            "imap_host": "127.0.0.1",
            "imap_port": str(self.imap_port),
            "imap_security": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": str(self.smtp_port),
            "smtp_security": "none",
        }

    async def say(
        self,
        text: str,
        *,
        chat: str = "ann@people.test",
        user: str = "ann@people.test",
        name: str = "Ann",
        group: bool = False,
        thread: str = "",
    ) -> str:
        id_ = f"{self.chats.next_id()}@people.test"
        mail = EmailMessage(policy=SMTP)
        mail["From"] = f"{name} <{user}>"
        mail["To"] = ", ".join([OWN, *(each for each in chat.split(",") if group and each != user)])
        mail["Date"] = localtime()
        mail["Message-ID"] = f"<{id_}>"
        if thread:
            mail["References"] = f"<{thread}>"
            mail["Subject"] = f"Re: {TITLE}"
        mail.set_content(text)
        await self.tells(partial(self.folder.put, mail.as_bytes()))
        return id_

    async def again(self, back: int = 0) -> None:
        self.folder.put(self.folder.mails[-1 - back].content)

    async def press(self, message: str, choice: int, *, user: str = "") -> None:
        raise AssertionError("mail has no buttons")

    def received(self) -> int:
        return sum(mail.seen for mail in self.folder.mails)

    def take(self, taken: Taken) -> None:
        """Show what the agent handed over."""
        self.taken.append(taken)
        mail = message_from_bytes(taken.content)
        parts = [part for part in mail.walk() if not part.is_multipart()]
        answers = str(mail.get("In-Reply-To", "")).strip("<>")
        shown = Shown(
            id=str(mail["Message-ID"]).strip("<>"),
            chat=",".join(sorted(taken.to)),
            text=_text(parts[0]),
            thread=" ".join(str(mail.get("References", "")).split()).partition(" ")[0].strip("<>"),
            file=next((name for part in parts if (name := part.get_filename())), ""),
            answers=answers,
            written=taken.content.decode("utf-8", "replace"),
        )
        self.shown.append(shown)
        self.chats.show(shown)


def _text(part: Message) -> str:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content.decode().strip()


@asynccontextmanager
async def mail_platform() -> AsyncIterator[MailPlatform]:
    """The platform, served until the block ends."""
    platform = MailPlatform()
    desk = Desk(password=platform.folder.password, trouble=lambda: platform.chats.trouble("send"), take=platform.take)
    async with imap_server(platform.folder) as imap_port, smtp_server(desk) as smtp_port:
        platform.imap_port, platform.smtp_port = imap_port, smtp_port
        yield platform
