"""Every place where a gate is switched off says why, and failures are caught at five boundaries only."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping

import pytest

from tests.architecture.source import Source, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.

# Where everything is caught, once, and turned into a sentence for the person or the model.
# Each is marked `# Boundary: one tool call` (or the like) and stands in the files that are named here.
BOUNDARIES: dict[str, set[str]] = {
    "one tool call": {
        "src/hermes_agent/agent/act.py",
        "src/hermes_agent/learning/dispatch.py",
        "src/hermes_agent/mcp_server/adapter.py",
    },
    "one conversation": {"src/hermes_agent/runs/scheduler.py", "src/hermes_agent/runs/one_run.py"},
    "one job": {
        "src/hermes_agent/app/command_queue.py",
        "src/hermes_agent/gateway/delivery.py",
        "src/hermes_agent/runs/alarm.py",
        "src/hermes_agent/runs/scheduler.py",
        "src/hermes_agent/app/reloading.py",
        "src/hermes_agent/gateway/server.py",
        "src/hermes_agent/learning/jobs.py",
        "src/hermes_agent/work/goals/pursuit.py",
        "src/hermes_agent/work/cron/firing.py",
    },
    "one HTTP request": {"src/hermes_agent/host/inbound/connection.py"},
    "one event listener": {
        "src/hermes_agent/runs/event_bus.py",
        "src/hermes_agent/cli/chat/chat.py",
        "src/hermes_agent/acp/session.py",
    },
}

# Where a failure of any kind is not ended but handed, as it is, to the one who waits for it in another thread or task.
HANDED_ON: set[str] = {"src/hermes_agent/host/tasks.py", "src/hermes_agent/store/sqlite/engine.py"}

SWITCH = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pragma:\s*no\s*cover|fmt:\s*skip)(?:\[[\w,\s-]+\]|:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?"
)
BOUNDARY = re.compile(r"Boundary:\s*([\w ]+)")
WORDS_OF_A_REASON = 2


def comments(module: Source, holding: re.Pattern[str]) -> dict[int, str]:
    # Taking a file apart costs a hundred times what looking into its text does.
    if not holding.search(module.text):
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def without_reason(modules: Iterable[Source]) -> list[str]:
    found = []
    for module in modules:
        for line, comment in comments(module, SWITCH).items():
            rest = SWITCH.sub("", comment)
            if rest != comment and len(re.findall(r"\w+", rest)) < WORDS_OF_A_REASON:
                found.append(f"{module.path}:{line}: {comment} gives no reason")
    return found


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether it is an `except Exception`, wider or bare, that raises nothing again."""
    if any(isinstance(node, ast.Raise) for line in handler.body for node in ast.walk(line)):
        return False
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in ("Exception", "BaseException") for kind in kinds)


def catches(module: Source) -> Iterator[tuple[int, str]]:
    """Each place that catches everything: its line, and the boundary that a comment at its `try` or `except` names."""
    said = comments(module, BOUNDARY)
    for block in module.nodes:
        if isinstance(block, ast.Try):
            for line in (handler.lineno for handler in block.handlers if catches_everything(handler)):
                near = (block.lineno - 1, block.lineno, line - 1, line, line + 1)
                mark = BOUNDARY.search(" ".join(said.get(number, "") for number in near))
                yield line, mark[1].strip() if mark else ""


def unmarked(modules: Iterable[Source], boundaries: Mapping[str, Collection[str]]) -> list[str]:
    found = []
    for module in modules:
        for line, name in catches(module):
            if name not in boundaries:
                found.append(f"{module.path}:{line}: catches everything and is none of the five boundaries")
            elif str(module.path) not in boundaries[name]:
                found.append(f"{module.path}:{line}: is not where {name} ends (see BOUNDARIES)")
    return found


def test_every_switch_gives_its_reason():
    assert without_reason(sources("src", "tests", "bench", ".ci")) == []


def test_everything_is_caught_at_the_boundaries_only():
    modules = [module for module in sources("src") if str(module.path) not in HANDED_ON]
    assert unmarked(modules, BOUNDARIES) == []


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: BLE001", "# type: ignore[arg-type]", "# pragma: no cover"])
def test_a_switch_without_a_reason_is_found(comment: str):
    assert len(without_reason([source("a.py", f"x = 1  {comment}\n")])) == 1
    assert without_reason([source("a.py", f"x = 1  {comment} - the library has no types\n")]) == []


CATCH = "try:\n    run()\nexcept {kind}:{comment}\n    log()\n"


@pytest.mark.parametrize("kind", ["Exception", "BaseException", "(KeyError, Exception)", "Exception as error"])
def test_an_unmarked_catch_of_everything_is_found(kind: str):
    assert len(unmarked([source("a.py", CATCH.format(kind=kind, comment=""))], {})) == 1


def test_a_marked_catch_is_accepted_in_its_own_file_only():
    text = CATCH.format(kind="Exception", comment="  # noqa: BLE001 - Boundary: one job. It may do anything.")
    assert unmarked([source("work/runner.py", text)], {"one job": {"work/runner.py"}}) == []
    assert unmarked([source("work/other.py", text)], {"one job": {"work/runner.py"}}) != []


def test_a_mark_above_the_try_counts_too():
    text = "# Boundary: one job.\ntry:\n    run()\nexcept KeyError:\n    pass\nexcept Exception:\n    log()\n"
    assert unmarked([source("work/runner.py", text)], {"one job": {"work/runner.py"}}) == []


def test_a_boundary_that_is_none_of_the_five_is_found():
    text = CATCH.format(kind="Exception", comment="  # Boundary: one bad day")
    assert unmarked([source("a.py", text)], {"one job": {"a.py"}}) != []


@pytest.mark.parametrize("end", ["undo()\n    raise", "if not known(error):\n        raise\n    wait()"])
def test_a_catch_that_raises_again_needs_no_mark(end: str):
    assert unmarked([source("a.py", f"try:\n    run()\nexcept BaseException as error:\n    {end}\n")], {}) == []
