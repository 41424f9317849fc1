"""A shape is small, comes back as it was, and tells what changed."""

from hypothesis import given, strategies as st

from hermes_agent.core.shape import MOST_MARKS, Shape, first_change, marks_of, read_shape


def shape(hashes: str, **more: object) -> Shape:
    return Shape(marks=marks_of(list(hashes)), **more)


@given(st.lists(st.text("abcdef", min_size=1, max_size=10), max_size=300))
def test_a_shape_is_small_and_comes_back_as_it_was(hashes):
    made = Shape(effort="high", use_tools=False, marks=marks_of(hashes))
    assert len(made.marks) <= MOST_MARKS + 1
    assert read_shape(made.text) == made
    assert read_shape("") is None


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_conversation_that_goes_on_has_not_changed(first, more):
    hashes = [f"h{number}" for number in range(first + more)]
    assert first_change(Shape(marks=marks_of(hashes[:first])), Shape(marks=marks_of(hashes))) == ""


def test_the_first_message_that_changed_is_named():
    assert first_change(shape("abcd"), shape("abXde")) == "message 3"
    assert first_change(shape("abcd"), shape("ab")) == "messages after 2 taken away"


def test_in_a_long_conversation_the_range_is_named():
    before = [f"h{number}" for number in range(40)]
    after = [*before[:21], *(f"x{number}" for number in range(21, 41))]
    assert first_change(Shape(marks=marks_of(before)), Shape(marks=marks_of(after))) == "messages 21 to 24"


def test_other_ways_of_asking_are_named():
    assert first_change(shape("a", effort="low"), shape("ab", effort="high")) == "reasoning level (low to high)"
    assert first_change(shape("a"), shape("ab", use_tools=False)) == "whether tools may be used"
