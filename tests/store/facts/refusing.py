"""A server whose every answer is that it is damaged."""

from collections.abc import Awaitable

from hermes_agent.core.errors import DatabaseDamaged
from hermes_agent.store.transaction import Change, Dialect


class Refusing:
    """An `Engine`."""

    dialect = Dialect.POSTGRES

    async def read(self, query: Change[object], *, brief: bool = False) -> object:
        raise DatabaseDamaged("The server says so.")

    async def write(self, change: Change[object], *, durable: bool = True) -> object:
        raise DatabaseDamaged("The server says so.")

    async def close(self) -> Awaitable[None] | None:
        return None
