"""The mark of a hidden secret is not written where the secret belongs."""

from __future__ import annotations

from collections.abc import Set

import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import CallFacts
from hermes_agent.tools.permission.permission import Permission
from hermes_agent.tools.permission.requests import Denied, Request
from hermes_agent.tools.settings import ApprovalSettings


class NoMemory:
    def knows(self, said: Set[str]) -> bool:
        return False

    def program(self, key: str) -> str | None:
        return None

    async def add(self, key: str, *, tool: str, what: str, folder: str, program: str = "") -> None:
        raise AssertionError("nothing is remembered")


def overwrites_a_secret(request: Request) -> str:
    """The file that is named where the call is refused for it."""
    decision = Permission(ApprovalSettings(mode="off"), NoMemory()).decide(request)
    return decision.reason.rpartition(" into ")[2].removesuffix(".") if isinstance(decision, Denied) else ""


def write(path: str, content: str, effect: Effect = Effect.KEYED) -> Request:
    return Request(
        tool="write_file",
        needs=frozenset({Capability.FS_WRITE}),
        facts=CallFacts(effect=effect, paths=(path,), summary=path),
        arguments={"path": path, "content": content},
        session="s",
        workspace="/w",
    )


def command(text: str) -> Request:
    facts = CallFacts(effect=Effect.EXEC, paths=None, summary=text)
    needs = frozenset({Capability.EXEC})
    return Request(tool="terminal", needs=needs, facts=facts, arguments={"command": text}, session="s", workspace="/w")


@pytest.mark.parametrize("path", ["/w/.env", "/w/.env.local", "/w/app/config.yaml", "/w/.npmrc", "/w/settings.json"])
@pytest.mark.parametrize("mark", ["[secret OPENAI_API_KEY]", "[secret]", "[redacted]", "[REDACTED]"])
def test_a_mark_is_not_written_into_a_file_of_settings(path: str, mark: str) -> None:
    assert overwrites_a_secret(write(path, f"KEY={mark}")) == path


def test_by_a_command_neither() -> None:
    assert overwrites_a_secret(command("echo 'KEY=[secret KEY]' >> .env")) == ".env"
    assert overwrites_a_secret(command("echo '[redacted]' > 'x")) == "a file"


def test_elsewhere_and_without_a_mark_it_is_only_text() -> None:
    assert overwrites_a_secret(write("/w/README.md", "[redacted]")) == ""
    assert overwrites_a_secret(write("/w/.env", "KEY=1")) == ""
    assert overwrites_a_secret(write("/w/.env", "[redacted]", Effect.READS)) == ""
    assert overwrites_a_secret(command("echo '[secret]' > notes.md")) == ""
