"""Prefixes: content-addressed, byte for byte."""

from hermes_agent.core.model import ToolSchema
from hermes_agent.core.section import Section, freeze, tools_text
from hermes_agent.store.database import Store
from tests.store.made import add, session

SECTIONS = (Section(name="soul", text="You are Hermes. \0 ünï"), Section(name="date", text="today"))
TOOLS = (
    ToolSchema(
        name="z", description="last first", parameters={"type": "object", "properties": {"b": {}, "a": {"x": [1, 2.0]}}}
    ),
    ToolSchema(name="a", description="", parameters={}),
)


async def test_a_prefix_comes_back_byte_for_byte(store: Store):
    prefix = freeze(SECTIONS, TOOLS)

    await store.write(lambda tx: store.prefixes.put(tx, prefix, SECTIONS))
    frozen = await store.prefixes.get(prefix.hash)

    assert frozen is not None
    assert frozen.sections == SECTIONS
    assert frozen.prefix.system == prefix.system
    assert tools_text(frozen.prefix.tools) == tools_text(prefix.tools)
    assert freeze(frozen.sections, frozen.prefix.tools).hash == prefix.hash


async def test_the_first_body_under_a_hash_stays(store: Store):
    prefix = freeze(SECTIONS, TOOLS)
    await store.write(lambda tx: store.prefixes.put(tx, prefix, SECTIONS))

    await store.write(lambda tx: store.prefixes.put(tx, prefix, ()))

    frozen = await store.prefixes.get(prefix.hash)
    assert frozen is not None
    assert frozen.sections == SECTIONS


async def test_an_unknown_hash_is_none(store: Store):
    assert await store.prefixes.get("0") is None


ROWS = "SELECT session, principal, at, eligible, read FROM episode JOIN exposure USING (session)"


async def draw(store: Store, *eligible: str) -> None:
    await store.write(lambda tx: store.exposures.draw(tx, "s1", eligible))


async def rows(store: Store) -> list[tuple[object, ...]]:
    return await store.read(lambda tx: tx.rows(ROWS))


async def test_what_was_offered_first_stays_and_what_is_read_is_noted_once(store: Store):
    await add(store, session(updated=7.0))

    await draw(store, "deploy", "brew-tea")
    await draw(store, "another")
    for name in ("deploy", "deploy", "never-offered"):
        await store.exposures.note_read("s1", name)
    await store.exposures.note_read("s2", "deploy")

    assert await rows(store) == [("s1", "cli:ann", 1.0, '["brew-tea","deploy"]', '["deploy"]')]


async def test_it_goes_with_the_session(store: Store):
    await add(store, session())
    await draw(store)

    await store.sessions.delete("s1")

    assert await rows(store) == []
