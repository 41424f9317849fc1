"""Small hands for the scripted model: the four tools of the scenarios, with results shaped like the real ones."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from hermes_agent.core.messages import Message, Role, Text, ToolCall, ToolResult, ToolSchema, said
from hermes_agent.providers.demo.play import Player
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say, call_id

TOOLS = tuple(
    ToolSchema(name=name, description="", parameters={}) for name in ("terminal", "read_file", "search_files", "patch")
)


class Hands:
    """Works in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def do(self, call: Call) -> str:
        return str(getattr(self, call.name)(**call.arguments))

    def terminal(self, command: str) -> str:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, shell=True, cwd=self._folder, text=True, capture_output=True, check=False, env=environment
        )
        return f"{done.stdout}{done.stderr}[exit code {done.returncode}]"

    def read_file(self, path: str) -> str:
        lines = (self._folder / path).read_text().splitlines()
        return "\n".join(f"{number}|{line}" for number, line in enumerate(lines, 1))

    def search_files(self, pattern: str, target: str = "content") -> str:
        if target == "files":
            return "\n".join(str(path.relative_to(self._folder)) for path in sorted(self._folder.rglob(pattern)))
        found = [
            f"{path.relative_to(self._folder)}:{number}: {line}"
            for path in sorted(self._folder.rglob("*.py"))
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if re.search(pattern, line)
        ]
        return "\n".join(found)

    def patch(self, path: str, old_string: str, new_string: str) -> str:
        file = self._folder / path
        text = file.read_text()
        assert text.count(old_string) == 1
        file.write_text(text.replace(old_string, new_string))
        return f"patched {path}"


def heard(*messages: Message, tools: tuple[ToolSchema, ...] = TOOLS) -> Heard:
    return Heard(model="scripted", messages=messages, tools=tools, stream=True)


def words(answer: Answer) -> str:
    return "".join(piece.text for piece in answer.pieces if isinstance(piece, Say))


def calls(answer: Answer) -> list[Call]:
    return [piece for piece in answer.pieces if isinstance(piece, Call)]


def spoken(answer: Answer, question: Heard) -> Message:
    """The answer as the conversation keeps it."""
    parts: list[Text | ToolCall] = []
    for index, piece in enumerate(answer.pieces):
        if isinstance(piece, Say):
            parts.append(Text(text=piece.text))
        elif isinstance(piece, Call):
            parts.append(ToolCall(id=call_id(piece, question, index), name=piece.name, arguments=piece.arguments))
    return Message(role=Role.ASSISTANT, parts=tuple(parts))


def result(call: ToolCall, text: str) -> Message:
    return Message(role=Role.TOOL, parts=(ToolResult(call_id=call.id, name=call.name, parts=(Text(text=text),)),))


def play(player: Player, hands: Hands, words_of_person: str) -> tuple[list[Message], str]:
    """The whole conversation until the model asks for nothing more, and its last words."""
    messages = [said(words_of_person)]
    while True:
        question = heard(*messages)
        answer = player.answer(question)
        message = spoken(answer, question)
        messages.append(message)
        if not message.tool_calls:
            return messages, words(answer)
        for asked, call in zip(message.tool_calls, calls(answer), strict=True):
            messages.append(result(asked, hands.do(call)))
