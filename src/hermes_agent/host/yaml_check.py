"""Checks YAML settings against a schema; each problem has its line number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, TypeGuard

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.schema import (
    Checked,
    Plain,
    PlainMap,
    Problem,
    Setting,
    describe,
    walk,
)

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST = 20
SUSPICIOUS = 500
MOST_NODES = 20_000
QUOTES = ("'", '"')
LONGEST_NUMBER = 18
TAG = "tag:yaml.org,2002:"
KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_[A-Z0-9_]+")
"""Looks like the name of a key."""
TEXT = Setting(name="", kind="text", make=str, optional=False, default="")
_scalars = yaml.constructor.SafeConstructor()
MAKERS: Mapping[str, Callable[[ScalarNode], Plain]] = {
    "int": _scalars.construct_yaml_int,
    "float": _scalars.construct_yaml_float,
    "bool": _scalars.construct_yaml_bool,
    "null": lambda _: None,
}


def check(content: bytes, schema: type[Any], file: str) -> Checked:
    """Parse and check settings; never raises because of their content."""
    text, problem = _decode(content, file)
    if problem:
        return Checked(values={}, lines={}, problems=(problem,))
    try:
        root = compose(text)
    except yaml.YAMLError as error:
        return Checked(values={}, lines={}, problems=(_syntax(error, file),))
    reader = _Reader(schema=schema, file=file)
    values: PlainMap = {}
    if root is not None and not _is_null(root):
        values = reader.section(root, schema, "")
    return Checked(values=values, lines=reader.lines, problems=tuple(reader.problems))


def parse_value(text: str, entry: Setting, key: str) -> tuple[Plain, str]:
    """Parses what a person typed for one setting: the plain value, and the error (empty where it fits)."""
    if entry.schema is not None:
        return None, f"`{key}` is a section; set one of the settings in it."
    if entry.kind == "text":
        return (text, "") if entry.fits(text) else (None, f"`{key}` takes {entry.expected}, not `{text}`.")
    if entry.kind == "list" and not text.lstrip().startswith("["):
        items: list[Plain] = [item.strip() for item in text.split(",") if item.strip()]
        return items, ""
    try:
        node = compose(text)
    except yaml.YAMLError:
        return None, f"`{key}` takes {entry.expected}; `{text}` cannot be read as that."
    reader = _Reader(schema=object, file="")
    value = None if node is None else reader.leaf(node, entry, key)
    if node is None or reader.problems:
        return None, f"`{key}` takes {entry.expected}, not `{text}`."
    return value, ""


def compose(text: str) -> Node | None:
    """The YAML nodes of a text. Raises `yaml.YAMLError`.

    The C composer recurses without a limit, so a text that could be deeply nested is measured first.
    """
    opened = text.count("[") + text.count("{")
    if opened > SUSPICIOUS or any(len(line) > SUSPICIOUS for line in text.splitlines()):
        depth = 0
        for event in yaml.parse(text, Loader=Loader):
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > SUSPICIOUS:
                mark: Any = event.start_mark  # of the C parser, or the other one
                raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)
    return yaml.compose(text, Loader=Loader)


def _decode(content: bytes, file: str) -> tuple[str, Problem | None]:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "", Problem(file=file, line=0, text="this is UTF-16; save it as UTF-8.")
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return "", Problem(file=file, line=line, text="a byte here is not UTF-8; save the file as UTF-8.")


def _syntax(error: yaml.YAMLError, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    return Problem(file=file, line=mark.line + 1 if mark else 0, text=f"not valid YAML: {said}.")


def _is_null(node: Node) -> bool:
    return bool(node.tag == f"{TAG}null")


@dataclass(slots=True, kw_only=True)
class _Reader:
    """One pass over the YAML nodes that collects all problems."""

    schema: type[Any]
    file: str
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    nodes: int = 0

    def problem(self, node: Node, text: str) -> None:
        self.problems.append(Problem(file=self.file, line=node.start_mark.line + 1, text=text))

    def entries(self, node: Node, key: str, expected: str) -> Mapping[str, tuple[Node, Node]]:
        """The entries of a mapping by name; a name that stands twice is a problem at its second place."""
        found: dict[str, tuple[Node, Node]] = {}
        if not isinstance(node, MappingNode):
            self.problem(node, f"{_where(key)} is {expected}, but {_shown(node)} stands here.")
            return found
        for name, value in node.value:
            if not isinstance(name, ScalarNode):
                self.problem(name, f"{_where(key)} has a name that is not a plain word.")
            elif name.value in found:
                first = found[name.value][0].start_mark.line + 1
                self.problem(name, f"`{_join(key, name.value)}` stands twice, first in line {first}.")
            else:
                found[name.value] = (name, value)
        return found

    def section(self, node: Node, schema: type[Any], key: str) -> PlainMap:
        known = describe(schema)
        values: PlainMap = {}
        for name, (place, value) in self.entries(node, key, "a section").items():
            entry = known.get(name)
            if entry is None:
                self.unknown(place, _join(key, name))
                continue
            before = len(self.problems)
            read = self.value(value, entry, _join(key, name))
            if read is not None or (entry.optional and len(self.problems) == before):
                values[name] = read
        return values

    def unknown(self, place: Node, key: str) -> None:
        near = nearest_key(key, (known for known, _ in walk(self.schema)))
        meant = f" Did you mean `{near}`?" if near else " `hermes config show --all` lists the settings."
        if KEY_NAME.fullmatch(key) or re.fullmatch(r"\w+_api_key", key):
            meant = f" Keys belong into .env: `hermes config set {key.upper()}` saves one there."
        self.problem(place, f"unknown setting `{key}`.{meant}")

    def value(self, node: Node, entry: Setting, key: str) -> Plain:
        if entry.schema is None:
            self.lines[key] = node.start_mark.line + 1
            return self.leaf(node, entry, key)
        if _is_null(node):
            return {}
        if entry.kind == "section":
            return self.section(node, entry.schema, key)
        rows = self.entries(node, key, entry.expected).items()
        one = replace(entry, kind="section")
        return {name: self.value(row, one, _join(key, name)) for name, (_, row) in rows}

    def leaf(self, node: Node, entry: Setting, key: str) -> Plain:
        """A value, or None with a problem noted (or None where nothing is meant)."""
        if _is_null(node):
            if not entry.optional:
                self.problem(node, f"`{key}` is empty; it takes {entry.expected}. Take the line out for the default.")
            return None
        match entry.kind:
            case "list" | "mixed" if entry.kind == "list" or isinstance(node, SequenceNode):
                is_one = isinstance(node, SequenceNode) and all(map(_is_text, node.value))
                value: Plain = [item.value for item in node.value] if is_one else None
            case "map" if isinstance(node, MappingNode):
                rows = self.entries(node, key, entry.expected).items()
                texts = {name: self.leaf(row, TEXT, _join(key, name)) for name, (_, row) in rows}
                return {name: text for name, text in texts.items() if text is not None}
            case "free":
                free = self.free(node, key, 0)
                if self.nodes > MOST_NODES:
                    self.problem(node, f"`{key}` is nested too deeply or has too many entries.")
                return free
            case _:
                value = _scalar(node, entry)
        if value is None:
            self.problem(node, f"`{key}` takes {entry.expected}, but {_shown(node)} stands here.")
        return value

    def free(self, node: Node, key: str, depth: int) -> Plain:
        """Whatever stands there; an alias that repeats itself without end is cut off by depth and count."""
        self.nodes += 1
        if depth > DEEPEST:
            self.nodes = MOST_NODES + 1
        if self.nodes > MOST_NODES:
            return None
        if isinstance(node, MappingNode):
            found = self.entries(node, key, "a section")
            return {name: self.free(value, key, depth + 1) for name, (_, value) in found.items()}
        if isinstance(node, SequenceNode):
            return [self.free(item, key, depth + 1) for item in node.value]
        return _guess(node) if isinstance(node, ScalarNode) else None


def _scalar(node: Node, entry: Setting) -> Plain:
    """The value where it fits kind and bounds, otherwise None."""
    if not _is_text(node) or entry.kind == "map":
        return None
    if entry.kind == "text" or node.value in entry.values:
        return str(node.value) if entry.fits(node.value) else None
    value = _guess(node)
    if isinstance(value, bool) or entry.kind in ("truth", "choice", "mixed"):
        return value if isinstance(value, bool) and entry.kind in ("truth", "mixed") else None
    if isinstance(value, int) and _is_decimal(node):
        value = float(value) if entry.kind == "number" else value
    elif not isinstance(value, float) or entry.kind != "number":
        return None
    fits = (entry.least is None or value >= entry.least) and (entry.most is None or value <= entry.most)
    return value if fits else None


def _is_decimal(node: ScalarNode) -> bool:
    """Whether a whole number means what a person reads: `010` is 8 and `1:30` is 90 to YAML, so neither is taken."""
    digits = node.value.lstrip("+-").replace("_", "")
    return bool(digits.isdecimal() and (digits == "0" or digits[0] != "0"))


def _is_text(node: Node) -> TypeGuard[ScalarNode]:
    return isinstance(node, ScalarNode) and not _is_null(node)


def _guess(node: ScalarNode) -> Plain:
    """The value as YAML would resolve it; its text where it is no number or truth value that can be kept."""
    maker = MAKERS.get(node.tag.removeprefix(TAG))
    if maker is None or len(node.value) > LONGEST_NUMBER:
        return str(node.value)
    try:
        value = maker(node)
    except (ValueError, KeyError):
        return str(node.value)
    return str(node.value) if isinstance(value, float) and not math.isfinite(value) else value


def _shown(node: Node) -> str:
    match node:
        case MappingNode():
            return "a section"
        case SequenceNode(value=items):
            said = ", ".join(item.value[:20] for item in items[:5] if isinstance(item, ScalarNode))
            return f"a list (`{said}`)" if said else "a list"
        case ScalarNode() if not _is_null(node):
            shown = node.value if len(node.value) <= 40 else node.value[:39] + "…"
            return f"the text `{shown}`" if node.style in QUOTES else f"`{shown}`"
        case _:
            return "nothing"


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _where(key: str) -> str:
    return f"`{key}`" if key else "the file"
