"""A name says what the thing is; a module opens by saying what is in it."""

import ast
import re
from collections.abc import Iterable

import pytest

from tests.architecture.source import Source, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.

EMPTY_MODULE = re.compile(
    r"^_?(utils?|helpers?|common|manager|misc|stuff|tools?_utils?)$|_(utils?|helpers?|impl|inner|v\d+)$"
)
PRIVATE_WORD = re.compile(
    r"^_*(floor|decks?|veil|trials|keeping|handing|nearby|surroundings|remembering|returning|house|doors?"
    r"|reception|telling|spare|told|reached|wards?|workbench|hands|relays|taped|moments|picking|keeper|beside"
    r"|heed|look_again|take_up|want|see_to|settle|let_go|is_order|order_of)$",
    re.IGNORECASE,
)
"""Words of our own that had a standard one: scheduler, seam, locks, lazy tool, notify, wake, resume, complete;
as names of modules, classes and public functions they do not come back."""
EMPTY_NAME = re.compile(r"_(impl|inner|v\d+|utils?|helpers?)$|(Manager|Utils?|Helpers?|Impl|V\d+)$")


def empty_names(modules: Iterable[Source]) -> list[str]:
    found = []
    for module in modules:
        parts = [*module.path.parent.parts, module.path.stem]
        found += [f"{module.path}: {part} says nothing" for part in parts if EMPTY_MODULE.search(part)]
        for node in module.nodes:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if named and EMPTY_NAME.search(node.name) and not node.name.startswith("test_"):
                found.append(f"{module.path}:{node.lineno}: {node.name} says nothing")
    return found


def private_words(modules: Iterable[Source]) -> list[str]:
    found = []
    for module in modules:
        parts = [*module.path.parent.parts, module.path.stem]
        found += [f"{module.path}: {part} is no standard term" for part in parts if PRIVATE_WORD.search(part)]
        for node in module.nodes:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if named and not node.name.startswith("_") and PRIVATE_WORD.search(node.name):
                found.append(f"{module.path}:{node.lineno}: {node.name} is no standard term")
    return found


def untitled(modules: Iterable[Source]) -> list[str]:
    found = []
    for module in modules:
        first = (ast.get_docstring(module.nodes[0]) or "").split("\n\n")[0]
        if module.text.strip() and not first.endswith((".", ":")):
            found.append(f"{module.path}: does not open with a sentence that says what is in it")
    return found


def test_no_name_is_empty():
    assert empty_names(sources("src", "tests", "bench", ".ci")) == []


def test_names_are_the_fields_terms():
    assert private_words(sources("src", ".ci")) == []


@pytest.mark.parametrize("text", ["class Floor: ...", "def heed(): ...", "async def let_go(): ..."])
def test_a_word_of_our_own_is_found(text: str):
    assert len(private_words([source("a.py", text)])) == 1
    assert len(private_words([source("app/decks/deck.py", "")])) == 2


def test_every_module_opens_with_a_sentence():
    assert untitled(sources("src", ".ci")) == []


@pytest.mark.parametrize(
    "path", ["core/utils.py", "core/helpers/a.py", "core/read_impl.py", "core/loop_v2.py", "misc.py"]
)
def test_an_empty_module_name_is_found(path: str):
    assert len(empty_names([source(path, "")])) == 1


@pytest.mark.parametrize("text", ["class SessionManager: ...", "def run_inner(): ...", "async def load_v2(): ..."])
def test_an_empty_name_inside_is_found(text: str):
    assert len(empty_names([source("a.py", text)])) == 1


def test_a_module_without_its_sentence_is_found():
    assert untitled([source("a.py", "x = 1\n")]) != []
    assert untitled([source("a.py", '"""stuff"""\nx = 1\n')]) != []
    assert untitled([source("a.py", '"""What is in it."""\nx = 1\n')]) == []
    assert untitled([source("__init__.py", "")]) == []
