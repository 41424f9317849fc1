"""The memory on this machine."""

import asyncio
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.memory.backends.holographic import (
    DAY,
    DIMENSIONS,
    HALF,
    LONGEST,
    MOST_FACTS,
    FactTools,
    Holographic,
    hologram,
    likeness,
    made_of,
    names_in,
    nearest,
    packed,
    seen,
    unpacked,
    worth,
)
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import Action
from hermes_agent.store.facts.finding import Asked, Standing, search_words
from hermes_agent.store.finding.terms import terms
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.memory.harness import TOLD, Call, told


def space_of(store: Store, space: str = "hermes", clock: FakeClock | None = None) -> Holographic:
    return Holographic(store, space, clock or FakeClock())


@pytest.fixture
def memory(store: Store, tmp_path: Path) -> Holographic:
    return space_of(store)


def tools_of(memory: object) -> FactTools:
    async def of(_: object) -> object:
        return memory

    return FactTools(of, told)  # type: ignore[arg-type]  # a backend by its shape


def asked(texts: Mapping[int, str], question: str) -> Asked:
    """What the store says of these facts, all new."""
    return Asked(
        standing=tuple(Standing(id=number, trust=0.5, checked=0.0) for number in texts),
        holding={
            phrase: frozenset(number for number, text in texts.items() if set(phrase) <= set(terms(text)))
            for phrase in search_words(question)
        },
    )


def test_a_rare_word_finds_more_than_a_common_one():
    texts = {number: f"the build of part {number} uses make" for number in range(1, 9)}
    texts[10] = "the build of kestrel uses ninja"
    question = "how does kestrel build"

    vectors = {number: seen(text) for number, text in texts.items()}

    assert nearest(asked(texts, question), vectors, seen(question), 0.0)[0] == 10


def test_the_order_of_words_decides_between_facts_of_the_same_words():
    texts = {1: "bob pays ann", 2: "ann pays bob"}
    vectors = {number: seen(text) for number, text in texts.items()}

    assert nearest(asked(texts, "ann pays bob"), vectors, seen("ann pays bob"), 0.0) == [2, 1]


def test_a_likeness_alone_finds_a_fact_whose_words_the_index_does_not_have():
    texts = {1: "kestrel is built with ninja", 2: "lunch is at noon"}
    vectors = {number: seen(text) for number, text in texts.items()}
    facts = asked(texts, "nothing that any holds")
    question = seen("is kestrel built with ninja or make")

    sure = tuple(Standing(id=each.id, trust=1.0, checked=0.0) for each in facts.standing)

    assert nearest(Asked(standing=sure, holding=facts.holding), vectors, question, 0.0) == [1]


def test_a_fact_counts_less_the_longer_nobody_confirmed_it():
    new, right = (Standing(id=1, trust=trust, checked=0.0) for trust in (0.5, 1.0))

    assert worth(new, 0.0) == 1.0
    assert worth(new, HALF * DAY) == 0.75
    assert worth(right, 100 * HALF * DAY) == pytest.approx(1.0)
    assert worth(new, -5.0) == 1.0
    assert worth(Standing(id=1, trust=9.0, checked=0.0), 0.0) == 2.0


def test_names_are_words_with_a_capital_or_a_mark():
    assert names_in("The build of Kestrel is Ann's, see #ninja.") == ("Kestrel", "Ann", "ninja")
    assert names_in("no names, but Åsa and 東京") == ("Åsa", "東京")


async def test_what_was_wrong_is_recalled_less_until_it_is_not(memory: Holographic):
    await memory.add("Tea is at four.", TOLD)
    await memory.add("Tea is at five.", TOLD)

    said = await tools_of(memory).fact_feedback(Call(), 1, False)
    assert said == "Trust of fact 1 is now 0.3."
    assert (await memory.recall("When is tea?"))[0] == "Tea is at five. [fact 2]"
    for _ in range(3):
        await memory.judge(1, TOLD, helpful=False)

    assert all("four" not in text for text in await memory.recall("When is tea?"))
    with pytest.raises(ToolError, match="no fact 7"):
        await tools_of(memory).fact_feedback(Call(), 7, True)


async def test_what_is_retracted_is_not_recalled_and_comes_back_with_an_undo(memory: Holographic, store: Store):
    await memory.add("Tea is at four.", TOLD)
    assert await memory.recall("tea")

    assert await tools_of(memory).fact_retract(Call(), 1) == "Fact 1 is retracted: Tea is at four."

    assert await memory.recall("tea") == []
    (change, *_) = await store.known_facts.log()
    assert (change.action, change.source) == (Action.RETRACTED, TOLD)
    await store.known_facts.undo("", change.id, TOLD, 1.0)
    assert await memory.recall("tea") == ["Tea is at four. [fact 1]"]


async def test_another_memory_keeps_no_trust():
    with pytest.raises(ToolError, match="keeps no trust"):
        await tools_of(object()).fact_retract(Call(), 1)


async def test_nobody_recalls_or_judges_what_another_was_told(store: Store, tmp_path: Path):
    ann, bob = space_of(store, "ann"), space_of(store, "bob")
    await ann.add("The code word is heron.", TOLD)

    assert await bob.recall("code word heron") == []
    assert await bob.health() == "0 facts"
    with pytest.raises(HermesError, match="no fact 1"):
        await bob.retract(1, TOLD)


async def test_another_process_recalls_what_this_one_was_told(open_another: OpenAnother, tmp_path: Path):
    one, two = [space_of(await open_another()) for _ in range(2)]
    await one.add("Tea is at four.", TOLD)
    assert await two.recall("tea") == ["Tea is at four. [fact 1]"]
    await one.add("Tea is green.", TOLD)
    await two.retract(1, TOLD)

    assert await one.recall("tea") == await two.recall("tea") == ["Tea is green. [fact 2]"]


async def test_a_fact_is_kept_once_and_many_at_once_are_all_kept(memory: Holographic):
    async with asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task(memory.add(f"Number {number % 6} is known.", TOLD))

    assert await memory.health() == "6 facts"


async def test_a_fact_has_a_length_and_a_space_an_end(memory: Holographic, store: Store):
    for text in ("", "x" * (LONGEST + 1)):
        with pytest.raises(HermesError, match="holographic: a fact has 1 to 2,000"):
            await memory.add(text, TOLD)
    many = [made_of(f"{number}") for number in range(3)]
    many += [type(many[0])(text=f"n{number}", names=(), vector=b"", trust=0.5) for number in range(MOST_FACTS - 3)]
    await asyncio.gather(*(store.known_facts.add("hermes", each, TOLD, 1.0) for each in many))

    with pytest.raises(HermesError, match="5,000 facts already"):
        await memory.add("One more.", TOLD)


async def test_a_vector_that_somebody_spoilt_is_made_again(memory: Holographic, store: Store):
    for text in ("Bob pays Ann.", "Ann pays Bob."):
        await memory.add(text, TOLD)
    await store.write(lambda tx: tx.run("UPDATE known_fact SET vector = $1", b"garbage"))

    assert await memory.recall("ann pays bob") == ["Ann pays Bob. [fact 2]", "Bob pays Ann. [fact 1]"]


def of(text: str) -> list[str]:
    return text.split()


def test_a_vector_is_like_itself_less_like_its_neighbour_and_unlike_others():
    one = hologram(of("cat sleep on sofa"))

    assert likeness(one, one) == pytest.approx(1.0, abs=1e-5)
    assert 0.3 < likeness(one, hologram(of("cat sleep"))) < 1.0
    assert abs(likeness(one, hologram(of("deploy staging first")))) < 0.3
    assert likeness(one, hologram([])) == 0.0


def test_the_order_of_words_counts():
    said = hologram(of("ann pays bob"))

    assert likeness(said, hologram(of("ann pays bob"))) > likeness(said, hologram(of("bob pays ann")))


def test_a_name_in_its_role_is_more_than_the_same_word():
    said = hologram(of("may will be hot"), ["may"])

    assert likeness(said, hologram(of("may"), ["may"])) > likeness(said, hologram(of("may"), ["will"]))


def test_a_vector_is_made_the_same_in_each_process_and_comes_back_as_it_was_kept():
    vector = hologram(of("kestrel"))

    assert [round(each, 4) for each in vector[:4]] == [0.1143, 0.0507, 0.0862, -0.0905]
    assert unpacked(packed(vector)) == vector


GARBAGE = {
    "nothing": b"",
    "short": b"\1abc",
    "another scheme": b"\2" + packed(hologram(["a"]))[1:],
    "no numbers": struct.pack(f"<B{2 * DIMENSIONS}f", 1, *[float("nan")] * (2 * DIMENSIONS)),
    "too large": struct.pack(f"<B{2 * DIMENSIONS}f", 1, *[1e30] * (2 * DIMENSIONS)),
}


@pytest.mark.parametrize("kept", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_vector_is_none(kept: bytes):
    assert unpacked(kept) is None
