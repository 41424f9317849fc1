"""A real SMTP server (aiosmtpd) that keeps what is handed over to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import Message

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

OWN = "hermes@agent.test"


class Outgoing:
    """What was handed over to the SMTP server, and to whom."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.people: list[list[str]] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content))
        self.people.append(envelope.rcpt_tos)
        return "250 taken"


def authenticated(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (OWN.encode(), b"secret")
    return AuthResult(success=good, handled=good)


@asynccontextmanager
async def smtp(outgoing: Outgoing) -> AsyncIterator[int]:
    """Serve until the block ends; gives the port."""

    def client() -> SMTP:
        return SMTP(outgoing, authenticator=authenticated, auth_require_tls=False, auth_required=True, ident="double")

    server = await asyncio.get_running_loop().create_server(client, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
