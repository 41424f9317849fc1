"""An error for a model does not put words of others into its own sentence: what a file, a host or a program said is
`quoted`, with a label of its own."""

import ast
from collections.abc import Iterator

from tests.architecture.test_tool_labels import SOURCE

FOREIGN = frozenset(
    {"body", "content", "err", "error", "facts", "files", "lost", "out", "real", "reason", "said", "text", "why"}
)
"""Names that hold what others said."""
OURS = frozenset({"strerror", "errno", "status_code"})
"""Attributes that are the system's, whatever they are asked of."""
LABELLED = ("api/", "cli/", "gateway/", "host/", "skills/hub/", "testing/", "tools/files/", "tools/web/")
"""What speaks to no model, and tools whose every sentence has the label of the file or page."""
EXEMPT = {
    "agent/agent.py: text": "the question that this program asks",
    "app/guards.py: text": "how often a call was repeated",
    "app/places.py: error": "the name of a missing package",
    "core/edits.py: content": "the files' tools label it; `skills.managing.quoting` does for skills",
    "core/tool.py: error": "the name of its class",
    "learning/curator/staging.py: said": "the curator sees the home's own skills alone",
    "learning/curator/tools.py: files": "the same",
    "learning/dispatch.py: reason": "what a gate says of the call's own words",
    "learning/drafts.py: text": "the question that this program asks",
    "memory/backends/holographic.py: error": "its tools have no label, so all that they say is outside",
    "memory/tools.py: error": "the same",
    "sandbox/backends/local.py: error": "the system's error",
    "sandbox/remote_place.py: lost": "sentences of the places of this program",
    "sandbox/transport.py: why": "the same",
    "skills/format.py: error": "`Library` and `quoting` label what is said of a file; else it is the call's own text",
    "skills/format.py: files": "the same",
    "skills/invoke.py: error": "said to the person who typed it",
    "tools/starting.py: error": "its sentence alone; its quote is passed on",
    "work/board/tools.py: error": "sentences of the board about the call's own words",
    "tools/shell.py: error": "said of the pattern that the call gave",
}
"""Where a foreign name may stand in a sentence, and why."""


def errors() -> frozenset[str]:
    """The classes of errors that a model reads."""
    parents: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef):
                parents.setdefault(each.name, set()).update(ast.unparse(base) for base in each.bases)
    found = {"ToolError"}
    while more := {name for name, bases in parents.items() if bases & found} - found:
        found |= more
    return frozenset(found)


def foreign(tree: ast.AST, kinds: frozenset[str]) -> Iterator[str]:
    """Each foreign name in the sentence or hint of an error."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kinds:
            for words in [*call.args, *(each.value for each in call.keywords if each.arg == "hint")]:
                yield from FOREIGN.intersection(_names(words))


def _names(words: ast.AST) -> Iterator[str]:
    """The names whose values become part of a text; of an attribute also its owner's."""
    match words:
        case ast.Attribute(attr=attr) if attr in OURS:
            return
        case ast.Call(func=ast.Name(id="len" | "reason")) | ast.Compare():
            return
        case ast.Attribute(attr=attr, value=value):
            yield attr
            yield from _names(value)
        case ast.Name(id=name):
            yield name
        case ast.IfExp(body=body, orelse=other):
            yield from _names(body)
            yield from _names(other)
        case _:
            for inner in ast.iter_child_nodes(words):
                yield from _names(inner)


def test_no_error_speaks_anothers_words_as_its_own():
    kinds = errors()
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    found = {
        f"{name}: {what}"
        for name, path in files.items()
        if not name.startswith(LABELLED)
        for what in foreign(ast.parse(path.read_text()), kinds)
    }
    assert sorted(found) == sorted(EXEMPT)


def test_a_foreign_name_in_a_sentence_is_found_and_a_quoted_one_is_not():
    kinds = frozenset({"ToolError"})
    bad = ("f'It failed: {error}'", "'It failed.', hint=f'There are: {files}'", "str(why)", "f'{made.err.decode()}'")
    good = ("'It failed:', quoted=Quoted(text=error)", "f'{error.strerror}'", "f'{len(files)} of {name}'")
    found = [list(foreign(ast.parse(f"ToolError({words})"), kinds)) for words in (*bad, *good)]
    assert found == [["error"], ["files"], ["why"], ["err"], [], [], []]
