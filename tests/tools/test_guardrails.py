"""Going round in circles is noticed: exact repeats, a tool that keeps failing, results that bring nothing new."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hermes_agent.tools.guardrails import MOST_ANSWERED, RUN, Call, Watch, call_of
from hermes_agent.tools.settings import GuardrailSettings

READ = call_of("read_file", {"path": "a"}, reads=True)
RUN_IT = call_of("terminal", {"command": "make"}, reads=False)
STRICT = GuardrailSettings(hard_stop=True)
CALLS = st.builds(
    Call, tool=st.sampled_from(["a", "b", "c"]), reads=st.booleans(), arguments=st.sampled_from(["1", "2", "3"])
)
STEPS = st.lists(st.tuples(CALLS, st.booleans(), st.sampled_from(["x", "y", "z"])), max_size=40)


def outcomes(watch: Watch, call: Call, times: int, *, failed: bool, result: str = "same") -> list[str]:
    return [watch.after(call, failed=failed, result=result) for _ in range(times)]


def test_an_exact_repeat_that_fails_is_told_from_the_second_time_on() -> None:
    first, second, third = outcomes(Watch(GuardrailSettings()), RUN_IT, 3, failed=True)

    assert first == ""
    assert "failed 2 times" in second
    assert "failed 3 times" in third


def test_one_tool_that_fails_in_many_ways_is_told_from_the_third_time_on() -> None:
    watch = Watch(GuardrailSettings())
    said = [
        watch.after(call_of("patch", {"n": number}, reads=False), failed=True, result=str(number))
        for number in range(3)
    ]

    assert said[:2] == ["", ""]
    assert "`patch` has now failed 3 times in a row" in said[2]


def test_the_same_result_of_the_same_read_is_told_from_the_second_time_on() -> None:
    assert [bool(said) for said in outcomes(Watch(GuardrailSettings()), READ, 3, failed=False)] == [False, True, True]


def test_a_write_in_between_makes_an_equal_read_news() -> None:
    watch = Watch(GuardrailSettings())
    outcomes(watch, READ, 1, failed=False)
    outcomes(watch, RUN_IT, 1, failed=False)

    assert outcomes(watch, READ, 1, failed=False) == [""]


def test_the_order_of_arguments_is_no_difference() -> None:
    assert call_of("t", {"a": 1, "b": 2}, reads=True) == call_of("t", {"b": 2, "a": 1}, reads=True)


def test_with_hard_stop_a_repeat_is_answered_and_then_the_run_is_stopped() -> None:
    watch = Watch(STRICT)
    outcomes(watch, READ, STRICT.stop_same_results, failed=False)
    kinds = [watch.before(READ).kind for _ in range(MOST_ANSWERED + 1)]

    assert kinds == ["answer"] * MOST_ANSWERED + ["stop"]
    assert watch.before(RUN_IT) == RUN


def test_with_hard_stop_a_tool_that_keeps_failing_ends_the_run() -> None:
    watch = Watch(STRICT)
    for number in range(STRICT.stop_tool_failures):
        assert watch.before(call_of("patch", {"n": number}, reads=False)) == RUN
        watch.after(call_of("patch", {"n": number}, reads=False), failed=True, result="")

    assert watch.before(call_of("patch", {"n": -1}, reads=False)).kind == "stop"


@given(STEPS)
def test_without_hard_stop_every_call_runs(steps: list[tuple[Call, bool, str]]) -> None:
    watch = Watch(GuardrailSettings())
    for call, failed, result in steps:
        assert watch.before(call) == RUN
        watch.after(call, failed=failed, result=result)


@given(st.lists(CALLS, max_size=60))
def test_work_that_succeeds_and_brings_news_is_never_remarked_on(calls: list[Call]) -> None:
    watch = Watch(STRICT)
    for number, call in enumerate(calls):
        assert watch.before(call) == RUN
        assert watch.after(call, failed=False, result=str(number)) == ""


@given(STEPS, CALLS)
def test_a_success_makes_the_tool_a_good_one_again(steps: list[tuple[Call, bool, str]], call: Call) -> None:
    watch = Watch(STRICT)
    for each, failed, result in steps:
        watch.after(each, failed=failed, result=result)
    watch.after(call, failed=False, result="new")

    assert watch.before(call).kind != "stop"
    assert watch.after(call, failed=True, result="") == ""


@given(STEPS)
def test_what_is_said_depends_on_the_calls_alone(steps: list[tuple[Call, bool, str]]) -> None:
    def said() -> list[object]:
        watch = Watch(STRICT)
        return [(watch.before(call), watch.after(call, failed=failed, result=result)) for call, failed, result in steps]

    assert said() == said()


@given(STEPS)
def test_calls_that_write_are_never_said_to_bring_nothing_new(steps: list[tuple[Call, bool, str]]) -> None:
    watch = Watch(GuardrailSettings())
    for call, failed, result in steps:
        said = watch.after(call, failed=failed, result=result)
        assert call.reads or "same result" not in said
