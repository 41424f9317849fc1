"""Facts: what the memory `holographic` knows, its changes, and taking them back. The owner at the terminal sees
everybody's; in a conversation everybody sees their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes_agent.app.operations.notes import LIMIT, person_of
from hermes_agent.app.operations.verbs import Argument, Kind, Noun, Verb
from hermes_agent.core.clock import moment
from hermes_agent.memory.whose import space_in
from hermes_agent.store.facts.facts import Fact, FactChange, Source

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

NONE_KNOWN = "No facts are known."


async def list_facts(access: Access[HomeSystem], limit: int = 100) -> list[Fact]:
    """The facts in force, the newest first."""
    return await access.system.store.known_facts.in_force(_space(access), limit=limit)


async def fact_log(access: Access[HomeSystem], limit: int) -> list[FactChange]:
    """Every change, the newest first."""
    return await access.system.store.known_facts.log(_space(access), limit=limit)


async def retract_fact(access: Access[HomeSystem], fact: int) -> str:
    """Take a fact out of force; what was done. It is kept, and `undo_fact` puts it back. Raises `HermesError`."""
    known, now = access.system.store.known_facts, access.system.clock.now()
    found = await known.retract(_space(access), fact, _source(access), now)
    return f"Fact {fact} is retracted: {found.text}"


async def undo_fact(access: Access[HomeSystem], change: int) -> str:
    """Take back a change; what was done. Raises `HermesError`."""
    known, now = access.system.store.known_facts, access.system.clock.now()
    made = await known.undo(_space(access), change, _source(access), now)
    return f"Change {change} of fact {made.fact} ({made.action.value}) is taken back."


def fact_lines(facts: Sequence[Fact]) -> str:
    """Facts in words: trust, who told them, from which messages."""
    heads = [f"{each.id}  {moment(each.added)}  trust {each.trust:.2f}  {each.space}" for each in facts]
    told = zip(heads, facts, strict=True)
    return "\n".join(f"{head}  {_told_by(each.source)}\n    {each.text}" for head, each in told)


def change_lines(changes: Sequence[FactChange]) -> str:
    """Changes in words; `-` stands for a fact that is not in force."""
    lines = []
    for change in changes:
        undoes = f" of {change.undoes}" if change.undoes else ""
        trust = " to ".join("-" if each is None else f"{each:.2f}" for each in (change.before, change.after))
        who = f"{change.source.author.value} {change.source.principal}".strip()
        lines.append(
            f"{change.id}  {moment(change.at)}  fact {change.fact}  {change.action.value}{undoes}  {trust}  {who}"
        )
        lines.append(f"    {change.text}")
    return "\n".join(lines)


def _told_by(source: Source) -> str:
    where = f"  {source.session} {source.first}-{source.last}" if source.session else ""
    return f"{f'{source.author.value} {source.principal}'.strip()}{where}"


def _space(access: Access[HomeSystem]) -> str:
    """Whose facts are meant; empty: everybody's."""
    person = person_of(access)
    is_everybody = access.where is None and person.owner
    return "" if is_everybody else space_in(access.system.settings.memory.provider_space, person)


def _source(access: Access[HomeSystem]) -> Source:
    return Source(author=access.author, principal=access.who.key, session=access.session)


FACTS = Noun(
    name="memory facts",
    short_help="The facts of the memory `holographic`.",
    help="Show, judge and take back the facts that the memory `holographic` keeps.",
    verbs=(
        Verb(
            name="show",
            help="Show the facts in force, everybody's, the newest first: trust, who told them, from which messages.",
            act=list_facts,
            text=fact_lines,
            arguments=(replace(LIMIT, default=100),),
            nothing=NONE_KNOWN,
            json=True,
            offline=True,
        ),
        Verb(
            name="log",
            help="Show every change, the newest first; `-` stands for a fact that is not in force.",
            act=fact_log,
            text=change_lines,
            arguments=(LIMIT,),
            nothing=NONE_KNOWN,
            json=True,
            offline=True,
        ),
        Verb(
            name="retract",
            help="Take a fact out of force: it is not recalled any more. It is kept, and `undo` puts it back.",
            act=retract_fact,
            arguments=(Argument(name="fact", kind=Kind.NUMBER),),
            offline=True,
        ),
        Verb(
            name="undo",
            help="Take back the change of that number (`hermes memory facts log`).",
            act=undo_fact,
            arguments=(Argument(name="change", kind=Kind.NUMBER),),
            offline=True,
        ),
    ),
)
