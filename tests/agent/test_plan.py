"""Which calls share a batch."""

from dataclasses import dataclass

from hermes_agent.agent.act import side_by_side
from hermes_agent.core.effects import Effect
from hermes_agent.core.tool import CallFacts


@dataclass
class Item:
    name: str
    facts: CallFacts | None


def item(name: str, effect: Effect | None = None, *paths: str, unknown: bool = False, after: str = "") -> Item:
    if effect is None:
        return Item(name, None)
    found = None if unknown else paths
    return Item(name, CallFacts(effect=effect, paths=found, summary=name, depends_on=tuple(after)))


def batches(*items: Item) -> list[str]:
    return ["".join(each.name for each in batch) for batch in side_by_side(items)]


def test_reads_run_together_even_where_their_paths_are_unknown() -> None:
    assert batches(item("a", Effect.READS, unknown=True), item("b", Effect.READS, "/x"), item("c", Effect.READS)) == [
        "abc"
    ]


def test_writes_to_different_paths_run_together() -> None:
    assert batches(item("a", Effect.WRITES, "/x/1"), item("b", Effect.WRITES, "/x/2")) == ["ab"]


def test_writes_to_one_path_run_in_order() -> None:
    assert batches(item("a", Effect.WRITES, "/x/1"), item("b", Effect.WRITES, "/x/1")) == ["a", "b"]


def test_a_folder_and_what_is_in_it_are_not_different_paths() -> None:
    assert batches(item("a", Effect.WRITES, "/x"), item("b", Effect.WRITES, "/x/1")) == ["a", "b"]
    assert batches(item("a", Effect.WRITES, "/"), item("b", Effect.WRITES, "/x/1")) == ["a", "b"]
    assert batches(item("a", Effect.WRITES, "/x"), item("b", Effect.WRITES, "/xy")) == ["ab"]


def test_a_read_waits_for_the_write_of_its_path() -> None:
    assert batches(item("w", Effect.WRITES, "/x"), item("r", Effect.READS, "/x"), item("s", Effect.READS, "/y")) == [
        "w",
        "rs",
    ]


def test_a_read_of_who_knows_what_waits_for_a_write() -> None:
    assert batches(item("w", Effect.WRITES, "/x"), item("r", Effect.READS, unknown=True)) == ["w", "r"]


def test_commands_questions_and_keyed_calls_run_alone() -> None:
    for effect in (Effect.EXEC, Effect.ASKS, Effect.KEYED):
        assert batches(
            item("r", Effect.READS, "/x"), item("e", effect, unknown=True), item("f", effect, unknown=True)
        ) == ["r", "e", "f"]


def test_a_call_that_cannot_run_disturbs_nobody() -> None:
    assert batches(item("a", Effect.EXEC, unknown=True), item("x"), item("b", Effect.EXEC, unknown=True)) == ["ax", "b"]


def test_nothing_asked_is_no_batch() -> None:
    assert batches() == []


def test_a_call_comes_after_those_of_the_tools_that_it_depends_on() -> None:
    reads = [item("a", Effect.READS, after="cb"), item("b", Effect.READS, after="c"), item("c", Effect.READS)]

    assert batches(*reads) == ["c", "b", "a"]


def test_calls_whose_tools_depend_on_each_other_keep_their_order() -> None:
    assert batches(item("a", Effect.READS, after="b"), item("b", Effect.READS, after="a")) == ["a", "b"]
