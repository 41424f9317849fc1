"""One mail over SMTP; each failure says whether it is certain that nothing was sent."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.email.mailbox import Address
from hermes_agent.host.late import late

if TYPE_CHECKING:
    import aiosmtplib

GREYLISTED = 60.0
"""Seconds after which a server that says "later" is asked again (RFC 6647 speaks of a minute and more)."""
ANSWER_SECONDS = 50.0
CLOSING = 421


class Post:
    """Sends mail through one server."""

    def __init__(self, address: Address, user: str, password: str, own: str) -> None:
        self._address = address
        self._user = user
        self._password = password
        self._own = own

    async def send(self, to: Sequence[str], content: bytes) -> None:
        """Hand the mail to the server. Raises `ChannelError` as `gateway/channel.py` `Channel.send` says."""
        library = late("aiosmtplib")
        async with self._connected() as client:
            try:
                await client.mail(self._own)
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
        """Raise what sending would raise before a mail is handed over."""
        async with self._connected():
            pass

    async def _name(self, client: aiosmtplib.SMTP, to: Sequence[str]) -> None:
        """Name who is to get it; enough that the server takes one of them."""
        last: aiosmtplib.SMTPResponseException | None = None
        taken = 0
        for address in to:
            try:
                await client.rcpt(address)
                taken += 1
            except late("aiosmtplib:SMTPRecipientRefused") as error:
                last = error
        if not taken and last is not None:
            raise last

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[aiosmtplib.SMTP]:
        library, where = late("aiosmtplib"), self._address
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
                await client.login(self._user, self._password)
        except library.SMTPAuthenticationError as error:
            client.close()
            raise refused_login(error.code, self._user, where.host) from error
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
    """What an answer of the server means: 4xx is for now, 5xx for ever (RFC 5321, 4.2.1)."""
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
    """4xx while logging in is the server's trouble, 5xx the password."""
    if code < 500:
        return NotNow(f"{host} cannot check the password now ({code}).")
    return TokenRefused(f"The mail server {host} refuses the password of {user} (`EMAIL_PASSWORD`).")
