"""Classes made by the project's own `dataclass` are what those of the standard library are."""

import copy
import importlib.util
import pickle
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from functools import cached_property
from typing import ClassVar, get_type_hints

import pytest

from hermes_agent.core import dataclass as module
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Outcome, RunEnded

OK = Outcome.ANSWERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Word:
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())

    def __repr__(self) -> str:
        return self.text


@dataclass(slots=True)
class Counter:
    """Counts."""

    count: int = 0


def test_it_is_a_dataclass_with_slots_and_fields():
    assert is_dataclass(Point)
    assert [each.name for each in fields(Point)] == ["x", "y", "note"]
    assert not hasattr(Point(x=1), "__dict__")
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]  # by name only


def test_the_first_records_of_a_class_are_as_the_later_ones_whose_making_is_compiled():
    @dataclass(slots=True, kw_only=True)
    class Row:
        name: str
        size: int = 1
        parts: list[int] = field(default_factory=list)
        total: int = field(default=0, init=False)

        def __post_init__(self) -> None:
            self.total = self.size + len(self.parts)

    rows = [Row(name="a", parts=[1]) for _ in range(3 * module.FEW)]
    assert [(row.name, row.size, row.parts, row.total) for row in rows] == [("a", 1, [1], 2)] * len(rows)
    assert rows[0].parts is not rows[1].parts


@pytest.mark.parametrize("values", [{}, {"x": 1, "z": 1}])
def test_a_first_record_with_a_value_too_few_or_too_many_is_refused(values: dict[str, int]):
    @dataclass(slots=True, kw_only=True)
    class Row:
        x: int

    with pytest.raises(TypeError, match="argument"):
        Row(**values)


def test_records_of_equal_content_are_equal_and_have_one_hash():
    assert Point(x=1, note="a") == Point(x=1, note="b")
    assert hash(Point(x=1, note="a")) == hash(Point(x=1, note="b"))
    assert Point(x=1) != Point(x=2)
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1


def test_a_record_is_never_equal_to_one_of_another_class():
    assert Counter() != Nothing()
    assert Point(x=1) != 1


def test_it_shows_its_fields_but_those_that_are_hidden():
    assert repr(Point(x=1, note="n")) == "Point(x=1, y=0)"
    assert repr(Counter(2)) == "Counter(count=2)"


def test_what_a_class_says_of_itself_stays():
    assert Word("A") == Word("a")
    assert len({Word("A"), Word("a")}) == 1
    assert repr(Word("A")) == "A"


def test_one_that_is_not_frozen_compares_and_has_no_hash():
    assert Counter(1) == Counter(1)
    with pytest.raises(TypeError):
        hash(Counter(1))


def test_records_are_replaced_copied_and_pickled():
    point = Point(x=1, note="n")
    assert replace(point, y=2) == Point(x=1, y=2)
    assert copy.deepcopy(point).note == "n"
    assert pickle.loads(pickle.dumps(point)).note == "n"


@dataclass(frozen=True, kw_only=True)
class Roomy:
    name: str

    @cached_property
    def size(self) -> int:
        return len(self.name)


@pytest.mark.parametrize("record", [Point(x=1), Word("a"), Roomy(name="a"), RunEnded(outcome=OK, text="", turns=1)])
def test_in_tests_nothing_frozen_is_changed(record: object):
    """What changes an event by mistake is found here: at run time nothing else would."""
    name = fields(record)[0].name  # type: ignore[arg-type]  # each is one
    for change in (lambda: setattr(record, name, 2), lambda: delattr(record, name), lambda: setattr(record, "new", 1)):
        with pytest.raises(FrozenInstanceError):
            change()
    assert copy.copy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record


def test_what_is_worked_out_once_is_kept_in_a_frozen_record_too():
    assert Roomy(name="abc").size == 3


def test_they_match_by_keyword():
    match Point(x=1, y=2):
        case Point(x=x, y=2):
            assert x == 1
        case _:
            pytest.fail("no match")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked(Point):
    kinds: ClassVar[int] = 3
    mark: "str | None" = None


def test_annotations_stay_and_class_variables_are_no_fields():
    assert get_type_hints(Point) == {"x": int, "y": int, "note": str}
    assert [each.type for each in fields(Point)] == [int, int, str]
    assert [each.name for each in fields(Marked)] == ["x", "y", "note", "mark"]
    assert Marked(x=1, mark="m") == replace(Marked(x=1), mark="m")
    assert Marked(x=1) != Point(x=1)


@dataclass(slots=True)
class Basket:
    name: str
    things: list[str] = field(default_factory=list)
    size: int = field(default=1, kw_only=True)
    kind: str = field(default="basket", init=False)
    marks: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.name = self.name.strip()


def test_each_record_gets_its_defaults_and_is_looked_over_after_it_is_made():
    first, second = Basket(" a ", size=2), Basket("b", ["x"])
    first.things.append("y")

    assert (first, second) == (Basket("a", ["y"], size=2), Basket("b", ["x"]))
    assert Basket("c").things == []
    assert (first.kind, first.marks, first.marks is second.marks) == ("basket", [], False)


def test_arguments_that_do_not_fit_are_told_with_the_name_of_the_class():
    with pytest.raises(TypeError, match=r"Basket.__init__\(\) missing 1 required positional argument: 'name'"):
        Basket()  # type: ignore[call-arg]  # that is the claim
    with pytest.raises(TypeError, match=r"Nothing.__init__\(\) got an unexpected keyword argument 'x'"):
        Nothing(x=1)  # type: ignore[call-arg]  # that is the claim


def test_where_nobody_tests_a_frozen_value_costs_no_check():
    """The program trusts its types: starting takes 25 ms less. A second copy of the module is as the program has it."""
    spec = importlib.util.spec_from_file_location("as_in_the_program", str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)

    @program.dataclass(frozen=True, slots=True, kw_only=True)
    class Free:
        x: int

    free, same = Free(x=1), Free(x=1)  # type: ignore[call-arg]  # the checker does not see through the copy

    assert "__setattr__" not in vars(Free)
    assert hash(free) == hash(same)
