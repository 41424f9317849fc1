"""docs/errors.md tells every failure that the program names: the tree, what it means, what to do, the exit code."""

import inspect

from hermes_agent.cli.exits import Exit
from hermes_agent.core import errors
from hermes_agent.core.errors import HermesError, ProviderError, ToolError
from tests.docs.pages import code, out_of_step, page, table


def real_errors() -> dict[str, type[HermesError]]:
    """Every class of the tree by name."""
    return {
        name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, HermesError)
    }


def rows(text: str) -> dict[str, tuple[str, ...]]:
    return {code(row[0])[0]: row for row in table(text, "error")}


def untrue(text: str) -> list[str]:
    """What the page says otherwise than the classes."""
    real, told = real_errors(), rows(text)
    problems = out_of_step(told, real)
    for name in told.keys() & real.keys():
        kind, (_, meaning, todo, marks) = real[name], told[name]
        if not meaning or not todo:
            problems.append(f"{name}: the page does not say what it means and what to do")
        if marks != mark_of(kind):
            problems.append(f"{name}: `{marks}` should be `{mark_of(kind)}`")
    return problems


def mark_of(kind: type[HermesError]) -> str:
    """What becomes of it: the word that a model reads, or the exit code, and whether a request is tried again."""
    if issubclass(kind, ToolError):
        return f"`{kind.kind}`"
    again = ", tried again" if issubclass(kind, ProviderError) and kind.retryable else ""
    return f"{int(Exit.of_error(kind))}{again}"


def test_every_error_is_told_with_its_meaning_and_its_fate():
    assert untrue(page("errors.md")) == []


def test_the_tree_is_the_one_that_the_program_draws():
    drawn = inspect.getdoc(errors)
    assert drawn is not None
    assert drawn.partition("\n\n")[2].strip() in page("errors.md")


def test_the_drawn_tree_holds_every_class():
    assert [name for name in real_errors() if name not in (inspect.getdoc(errors) or "")] == []


def test_an_error_that_is_left_out_and_a_wrong_exit_code_are_found():
    text = page("errors.md")
    assert untrue(text.replace("| `DiskFull` |", "| nothing |").replace("| nothing |", "| `Nothing` |")) == [
        "DiskFull: is not in the manual",
        "Nothing: is in the manual and not there",
    ]
    changed = "\n".join(line.removesuffix("3 |") + "4 |" if "`NoModel`" in line else line for line in text.split("\n"))
    assert untrue(changed) == ["NoModel: `4` should be `3`"]
