"""Result of a one-shot run, folded from its events: reply, refused calls and changed files."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import Refused, Unapproved
from hermes_agent.core.events import Delegated, Event, Notice, Outcome, Replied, RunEnded, ToolEnded
from hermes_agent.core.messages import ToolCall, ToolResult

WRITTEN = re.compile(r"^\+\+\+ (.+)$", re.MULTILINE)
"""The line of a diff that names the file as it is now."""

EXIT = re.compile(r"\[(exit \d+)[,;\]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A tool call refused in a one-shot run; `allow` is the `--allow` value that would permit it (empty: none)."""

    call: str
    reason: str
    allow: str = ""

    def __str__(self) -> str:
        way = f" `--allow {shlex.quote(self.allow)}` allows it." if self.allow else ""
        return f"Refused: {self.call}\n  {self.reason}{way}"


@dataclass(slots=True, kw_only=True)
class Result:
    """Collects one run's reply, refusals, changed files and notices from its events."""

    reply: str = ""
    refusals: list[Refusal] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    delegated: bool = False
    _calls: dict[str, ToolCall] = field(default_factory=dict)

    def see(self, event: Event) -> Refusal | None:
        """Apply an event. Returns the refusal if it is one."""
        match event:
            case Replied(message=message):
                self.reply = message.text
                self._calls.update({call.id: call for call in message.tool_calls})
            case Notice(text=text):
                self.notices.append(text)
            case Delegated():
                self.delegated = True
            case ToolEnded(is_error=True) as ended:
                return self._refused(ended)
            case ToolEnded() as ended:
                self._wrote(ended)
            case _:
                pass
        return None

    def followed_by(self, later: Result) -> Result:
        """With what the next run adds; the reply is the later one's."""
        later.refusals[:0], later.files[:0], later.notices[:0] = self.refusals, self.files, self.notices
        later.delegated = True
        return later

    def parts(self, ended: RunEnded) -> tuple[str, str]:
        """The whole reply (`reply` may be only its last piece), and why it is incomplete (empty if complete)."""
        if ended.outcome is Outcome.ANSWERED:
            return ended.text, ""
        whole, _, problem = ended.text.rpartition("\n\n")
        return (whole, problem) if self.reply and whole.endswith(self.reply) else ("", ended.text)

    def _refused(self, ended: ToolEnded) -> Refusal | None:
        said = answer_of(ended)
        try:
            told = json.loads(said)
        except ValueError:
            return None
        if not isinstance(told, dict) or told.get("kind") not in (Refused.kind, Unapproved.kind):
            return None
        about = _about(ended, self._calls.get(ended.call_id))
        allow = about if told["kind"] == Unapproved.kind else ""
        self.refusals.append(Refusal(call=about, reason=str(told.get("error", "")), allow=allow))
        return self.refusals[-1]

    def _wrote(self, ended: ToolEnded) -> None:
        """Note the files that a file tool changed, from the diffs in its answer."""
        if ended.tool in ("write_file", "patch"):
            found = [name.removeprefix("b/").split("\t")[0] for name in WRITTEN.findall(answer_of(ended))]
            call = self._calls.get(ended.call_id)
            found += [str(call.arguments["path"])] if call is not None and call.arguments.get("path") else []
            self.files += [name for name in dict.fromkeys(found) if name not in self.files and name != "/dev/null"]

    def as_json(self, reply: str, **more: object) -> str:
        """The result as one line of JSON."""
        told = {
            "reply": reply,
            "refusals": [asdict(refusal) for refusal in self.refusals],
            "files": self.files,
            "notices": self.notices,
        }
        return json.dumps(told | more, ensure_ascii=False)


def answer_of(ended: ToolEnded) -> str:
    """The text of a call's result."""
    return "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))


def failed_with(text: str) -> str:
    """A failed command's exit status, such as `exit 1`; empty otherwise."""
    codes = [found for line in text[-2_000:].split("\n") if (found := EXIT.match(line))]
    return codes[-1][1] if codes and codes[-1][1] != "exit 0" else ""


def _about(ended: ToolEnded, call: ToolCall | None) -> str:
    """What the call wanted, in the form used for approvals."""
    wanted = call.arguments if call is not None else {}
    command, path = wanted.get("command"), wanted.get("path")
    if isinstance(command, str) and command.strip():
        return command.strip()
    return f"{ended.tool}:{path}" if isinstance(path, str) and path else ended.tool
