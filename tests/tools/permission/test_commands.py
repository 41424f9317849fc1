"""What `--allow GLOB` allows: what was named, and nothing that hides behind it."""

from __future__ import annotations

from collections.abc import Set

import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import CallFacts
from hermes_agent.tools.permission.permission import Permission
from hermes_agent.tools.permission.requests import Allowed, Denied, Request
from hermes_agent.tools.settings import ApprovalSettings

COMMANDS = (
    # command, globs, whether it runs
    ("git tag -d a", ["git tag -d a"], True),
    ("git  tag   -d a", ["git tag -d a"], True),
    ("git tag -d ab", ["git tag -d a"], False),
    ("git push --force origin main", ["git push *"], True),
    ("git push --force origin main; git tag -d a", ["git push *"], False),
    ("git push --force origin main && git tag -d a", ["git push *", "git tag -d a"], True),
    ('git push --force "$(git tag -d a)"', ["git push *"], False),
    ("git push --force `git tag -d a`", ["git push *"], False),
    ("git push --force origin\ngit tag -d a", ["git push *"], False),
    ("git push --force origin > /etc/passwd", ["git push *"], False),
    ("GIT_SSH_COMMAND=./evil git push --force", ["git push *"], False),
    ("sudo git push --force", ["git push *"], False),
    ("sudo git push --force", ["sudo git push --force"], True),
    ("sh -c 'git push --force; git tag -d a'", ["git push *"], False),
    ("cd sub && git push", ["git push"], True),
    ("rm -rf /", ["*"], False),
    ("rm -rf /", ["rm -rf /"], False),
    ("git push", [""], False),
    ("git push", ["terminal"], True),
    ("git push 'unclosed", ["git *"], False),
)


class Nothing:
    def knows(self, said: Set[str]) -> bool:
        return False

    def program(self, key: str) -> str | None:
        return None

    async def add(self, key: str, *, tool: str, what: str, folder: str, program: str = "") -> None:
        raise AssertionError("nothing is remembered")


def decided(request: Request, globs: list[str], settings: ApprovalSettings | None = None) -> Allowed | Denied:
    decision = Permission(settings or ApprovalSettings(), Nothing(), allowed=globs).decide(request)
    assert isinstance(decision, Allowed | Denied)
    return decision


def command(text: str) -> Request:
    return Request(
        tool="terminal",
        needs=frozenset({Capability.EXEC}),
        facts=CallFacts(effect=Effect.EXEC, paths=(), summary=f"terminal: {text}"),
        arguments={"command": text},
        session="s",
        workspace="/w",
        attended=False,
    )


def writing(*paths: str) -> Request:
    return Request(
        tool="write_file",
        needs=frozenset({Capability.FS_WRITE}),
        facts=CallFacts(effect=Effect.KEYED, paths=paths, summary="write_file"),
        arguments={"path": paths[0]},
        session="s",
        workspace="/w",
        attended=False,
    )


@pytest.mark.parametrize(("text", "globs", "runs"), COMMANDS)
def test_a_glob_covers_the_commands_that_it_matches_and_no_others(text: str, globs: list[str], runs: bool) -> None:
    assert isinstance(decided(command(text), []), Denied)
    assert isinstance(decided(command(text), globs), Allowed) is runs


def test_of_several_paths_each_must_be_allowed() -> None:
    assert isinstance(decided(writing("/other/a"), ["write_file:/other/*"]), Allowed)
    assert isinstance(decided(writing("/other/a", "/etc/b"), ["write_file:/other/*"]), Denied)
    assert isinstance(decided(writing("/w/in", "/other/a"), ["write_file:/other/*"]), Allowed)
    assert isinstance(decided(writing("/other/a"), ["write_file"]), Allowed)


def test_the_owners_deny_list_and_what_is_not_granted_hold() -> None:
    assert isinstance(decided(command("git tag -d a"), ["*"], ApprovalSettings(deny=("git tag*",))), Denied)


def test_only_what_a_yes_would_allow_is_called_so() -> None:
    assert decided(command("git tag -d a"), []).unasked
    assert not decided(command("rm -rf /"), []).unasked


@pytest.mark.parametrize(
    ("answer", "told"),
    [("See ./Makefile", "See ./Makefile."), ("Not NOW!", "Not NOW!"), (" Why? ", "Why?"), ("Ask Bob.", "Ask Bob.")],
)
async def test_the_words_of_a_refusal_stay_as_they_were_written(answer: str, told: str) -> None:
    decision = await Permission(ApprovalSettings(), Nothing()).remember(command("git tag -d a"), answer)

    assert decision == Denied(f"The person did not agree and said: {told}")
