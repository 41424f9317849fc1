"""Each built-in tool says where the bytes of its answers and errors come from; one that does not is outside."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/hermes_agent"
OUTSIDE = {
    "session_search": "past conversations hold anything",
    "recall_add": "an external memory says what it likes when it refuses",
    "recall_search": "an external memory holds anything",
    "mcp_prompt": "a server says what it likes",
    "mcp_resource": "a server says what it likes",
    "fact_feedback": "quotes a fact of the memory",
    "fact_retract": "quotes a fact of the memory",
}
"""Tools that name no label, and why theirs is outside."""


def unlabelled(path: Path) -> list[str]:
    functions = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.AsyncFunctionDef)]
    return [
        function.name
        for function in functions
        for mark in function.decorator_list
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "tool"
        if "origin" not in {keyword.arg for keyword in mark.keywords}
    ]


def test_each_built_in_tool_names_the_label_of_what_it_says():
    found = [name for path in SOURCE.rglob("*.py") for name in unlabelled(path)]
    assert sorted(found) == sorted(OUTSIDE)
