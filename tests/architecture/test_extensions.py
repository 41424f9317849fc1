"""One file and one line: each kind of extension has a folder and a table of `"module:attr"`, and neither has more."""

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pytest

from tests.architecture.source import PACKAGE, ROOT, sources

OPERATIONS = "hermes_agent.app.operations."
FOLDERS = {"dialects", "backends", "channels", "commands"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """One kind: its folder, and the file and name of its table, a dict of name to `"module:attr"`.

    `besides` are files of the folder that are no extensions, `operations` whether a line may name an operation.
    """

    folder: str
    file: str
    table: str
    besides: frozenset[str] = frozenset()
    operations: bool = False


# Each kind that the program has.
KINDS: tuple[Extensions, ...] = (
    Extensions(folder="providers/dialects", file="providers/dialects/__init__.py", table="DIALECTS"),
    Extensions(
        folder="app/commands",
        file="app/commands/__init__.py",
        table="COMMANDS",
        besides=frozenset({"command", "goal_words"}),
    ),
    Extensions(folder="cli/commands", file="cli/table.py", table="COMMANDS", operations=True),
    Extensions(folder="memory/backends", file="memory/backends/__init__.py", table="BACKENDS"),
    Extensions(
        folder="tools/files/documents",
        file="tools/files/documents/__init__.py",
        table="DOCUMENTS",
        besides=frozenset({"archive"}),
    ),
    Extensions(folder="tools/web/search", file="tools/web/searching.py", table="BACKENDS"),
    Extensions(folder="gateway/channels", file="gateway/channels/__init__.py", table="CHANNELS"),
    Extensions(folder="sandbox/backends", file="sandbox/place.py", table="PLACES"),
)


def out_of_step(package: str, stems: Collection[str], table: Mapping[str, str]) -> list[str]:
    """Files of `package` that no line of the table names, and lines whose module is not there."""
    named = {line.partition(":")[0] for line in table.values()}
    there = {f"{package}.{stem}" for stem in stems if not stem.startswith("_")}
    missing = [f"{module}: has no line in the table" for module in sorted(there - named)]
    return missing + [f"{module}: is in the table and not there" for module in sorted(named - there)]


def written_table(text: str, name: str) -> dict[str, str]:
    """The value of the module-level dict `name`, read without importing anything."""
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                return ast.literal_eval(value)
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if found == name:
                return ast.literal_eval(value)
    raise LookupError(f"no table {name}")


def undeclared(folders: Iterable[str], kinds: Collection[Extensions]) -> list[str]:
    declared = {kind.folder for kind in kinds}
    return sorted(folder for folder in set(folders) if folder.split("/")[-1] in FOLDERS and folder not in declared)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.folder)
def test_each_file_has_its_line_and_each_line_its_file(kind: Extensions):
    package = f"hermes_agent.{kind.folder.replace('/', '.')}"
    stems = {file.stem for file in (ROOT / PACKAGE / kind.folder).glob("*.py")} - kind.besides
    table = written_table((ROOT / PACKAGE / kind.file).read_text(), kind.table)
    if kind.operations:
        table = {name: line for name, line in table.items() if not line.startswith(OPERATIONS)}
    assert out_of_step(package, stems, table) == []


def test_each_folder_of_extensions_is_declared_above():
    modules = (module.path.relative_to(PACKAGE) for module in sources(str(PACKAGE)))
    folders = {str(path.parent) for path in modules if path.stem != "__init__"}
    assert undeclared(folders, KINDS) == []


def test_a_file_without_its_line_is_found():
    assert out_of_step("a.b", ["__init__", "irc", "xmpp"], {"irc": "a.b.irc:Irc"}) == [
        "a.b.xmpp: has no line in the table"
    ]


def test_a_line_without_its_file_is_found():
    assert out_of_step("a.b", [], {"irc": "a.b.irc:Irc"}) == ["a.b.irc: is in the table and not there"]


def test_a_table_is_read_without_importing():
    text = 'import nowhere\n\nTABLE: dict[str, str] = {\n    "irc": "a.b.irc:Irc",\n}\n'
    assert written_table(text, "TABLE") == {"irc": "a.b.irc:Irc"}
    assert written_table('T = {"a": "b:c"}', "T") == {"a": "b:c"}


def test_an_undeclared_folder_is_found():
    kinds = (Extensions(folder="providers/dialects", file="providers/dialect.py", table="DIALECTS"),)
    assert undeclared(["providers/dialects", "gateway/channels", "core"], kinds) == ["gateway/channels"]
