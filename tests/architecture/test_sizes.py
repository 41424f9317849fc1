"""Nothing grows past one reading. ruff holds functions; here: files, classes, folders."""

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest

from tests.architecture.source import Source, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.

LINES_OF_A_FILE = 400
LINES_OF_A_CLASS = 250
FILES_OF_A_FOLDER = 25

# A folder of extensions grows by one file each; its table is the map, not its listing.
FOLDERS_OF_EXTENSIONS = {"bench", "doubles", "dialects", "backends", "channels", "commands", "sql"}


def too_large(modules: Iterable[Source]) -> list[str]:
    found: list[str] = []
    folders: Counter[PurePosixPath] = Counter()
    for module in modules:
        folders[module.path.parent] += 1
        if module.lines > LINES_OF_A_FILE:
            found.append(f"{module.path}: {module.lines} lines of at most {LINES_OF_A_FILE}")
        large = {name: lines for name, lines in lines_of_classes(module).items() if lines > LINES_OF_A_CLASS}
        found += [
            f"{module.path}: class {name} has {large[name]} lines of at most {LINES_OF_A_CLASS}" for name in large
        ]
    for folder, files in folders.items():
        if files > FILES_OF_A_FOLDER and folder.name not in FOLDERS_OF_EXTENSIONS:
            found.append(f"{folder}: {files} files of at most {FILES_OF_A_FOLDER}")
    return found


def lines_of_classes(module: Source) -> dict[str, int]:
    classes = (node for node in module.nodes if isinstance(node, ast.ClassDef))
    return {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in classes}


def test_every_file_class_and_folder_fits_in_one_reading():
    assert too_large(sources("src", "tests", "bench", ".ci")) == []


def test_a_long_file_is_found():
    assert too_large([source("a.py", "x = 1\n" * 401)]) == ["a.py: 401 lines of at most 400"]
    assert too_large([source("a.py", "x = 1\n" * 400)]) == []


def test_a_long_class_is_found():
    text = "class A:\n" + "    x = 1\n" * 250
    assert too_large([source("a.py", text)]) == ["a.py: class A has 251 lines of at most 250"]


def test_a_crowded_folder_is_found_unless_it_holds_extensions():
    assert too_large([source(f"tools/a{n}.py", "") for n in range(26)]) == ["tools: 26 files of at most 25"]
    assert too_large([source(f"dialects/a{n}.py", "") for n in range(26)]) == []
