"""A cache break is found where less came from the cache than could have, and blamed on what changed first."""

from dataclasses import replace

from hermes_agent.core.events import Entry, Undone
from hermes_agent.core.messages import Prefix, ToolSchema, Usage
from hermes_agent.core.section import Section, freeze, tools_text
from hermes_agent.core.shape import Shape
from hermes_agent.store.breaks import FrozenPrefix, first_section
from hermes_agent.store.database import Store
from hermes_agent.store.usage import UsageRow
from tests.store.made import QUEUE, add, session

SHAPE = Shape(effort="medium", marks=((1, "a"), (2, "b")))
ROW = UsageRow(
    call_id="",
    session="s",
    run="r",
    turn=1,
    purpose="chat",
    provider="openai",
    model="gpt",
    prefix="p",
    messages=2,
    at=0.0,
    principal="cli:ann",
    credential="K1",
    shape=SHAPE.text,
)


async def entered(store: Store, *calls: tuple[UsageRow, int, int]) -> list[tuple[int, int, str]]:
    """The breaks among calls, each with its tokens read and those of them from the cache."""
    for number, (row, tokens, cached) in enumerate(calls):
        named = replace(row, call_id=f"c{number}", at=row.at or 10.0 * number)
        await store.write(lambda tx, row=named: store.usage.open(tx, row))
        usage = Usage(input=tokens, cached=cached)
        await store.write(
            lambda tx, row=named, usage=usage: store.usage.complete(tx, row.call_id, usage, None, "ok", 1.0)
        )
    return [(each.expected, each.cached, each.changed) for each in await store.breaks.since(0.0)]


async def test_a_conversation_that_finds_its_beginning_has_no_break(store: Store):
    assert await entered(store, (ROW, 5_000, 0), (ROW, 6_000, 4_900), (ROW, 7_000, 5_900)) == []


async def test_a_message_that_changed_is_blamed(store: Store):
    changed = replace(ROW, shape=replace(SHAPE, marks=((1, "a"), (2, "x"), (3, "y"))).text)
    assert await entered(store, (ROW, 5_000, 4_000), (changed, 6_000, 0)) == [(5_000, 0, "message 2")]


async def test_who_changed_the_messages_is_named_where_the_log_tells(store: Store):
    await add(store, session("s"))
    lease = await store.lanes.hold("s", QUEUE)
    assert lease is not None
    entries = [Entry(number=1, run="r", at=5.0, event=Undone(to=0))]
    await store.write(lambda tx: store.history.append(tx, lease, entries))
    changed = replace(ROW, shape=replace(SHAPE, marks=((1, "a"), (2, "x"), (3, "y"))).text)

    assert await entered(store, (ROW, 5_000, 4_000), (changed, 6_000, 0)) == [(5_000, 0, "message 2 (by an undo)")]


async def test_another_key_and_another_model_are_blamed_before_the_messages(store: Store):
    other = replace(ROW, credential="K2")
    model = replace(ROW, model="gpt2", credential="K2")
    assert await entered(store, (ROW, 5_000, 4_000), (other, 5_000, 0), (model, 5_000, 0), (model, 5_000, 4_000)) == [
        (5_000, 0, "key (K1 to K2)"),
        (5_000, 0, "model (before: openai/gpt)"),
    ]


async def test_a_pause_is_blamed_where_nothing_changed(store: Store):
    late = replace(ROW, at=600.0)
    assert await entered(store, (replace(ROW, at=1.0), 5_000, 4_000), (late, 5_000, 0)) == [
        (5_000, 0, "nothing here: 10 minutes had passed")
    ]


async def test_a_provider_that_lost_it_is_blamed_last(store: Store):
    assert await entered(store, (ROW, 5_000, 4_000), (ROW, 5_000, 100)) == [
        (5_000, 100, "nothing here: the provider did not find it")
    ]


async def test_short_questions_other_conversations_and_models_without_a_cache_have_no_breaks(store: Store):
    short = [(replace(ROW, session="short"), 900, 0)] * 2
    other = [(replace(ROW, session="other"), 5_000, 4_000), (replace(ROW, purpose="title"), 5_000, 0)]
    never = [(replace(ROW, session="never", model="local"), 5_000, 0)] * 2
    assert await entered(store, *short, *other, *never) == []


async def test_the_section_of_the_prompt_that_changed_is_named(store: Store):
    first, second = ((Section(name="identity", text="I"), Section(name="date", text=day)) for day in ("Mon", "Tue"))
    old, new = freeze(first, ()), freeze(second, ())
    await store.write(lambda tx: store.prefixes.put(tx, old, first))
    await store.write(lambda tx: store.prefixes.put(tx, new, second))
    before, after = replace(ROW, prefix=old.hash), replace(ROW, prefix=new.hash)
    assert await entered(store, (before, 5_000, 4_000), (after, 5_000, 0)) == [(5_000, 0, "date")]


def test_tools_come_before_the_sections():
    tool = ToolSchema(name="t", description="d", parameters={})
    section = Section(name="identity", text="I")
    old = FrozenPrefix(prefix=Prefix(system="I", tools=(), hash="1"), sections=(section,))
    new = FrozenPrefix(prefix=Prefix(system="I", tools=(tool,), hash="2"), sections=(section,))
    assert first_section(old, new) == "tools"
    assert first_section(old, old) == "prompt"


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
