"""The Python program that runs in the place: the model's code, and a way to call tools by its own output and input."""

from __future__ import annotations

import json

CLIENT = '''\
def _begin():
    import _thread, json, sys, types

    out, answers, mark, turn = sys.stdout, sys.stdin.buffer, @MARK@, _thread.allocate_lock()

    class ToolFailed(Exception):
        """A tool's answer that is an error."""

    def call(name, /, **arguments):
        with turn:
            failed, answer = json.loads(asked(json.dumps([name, arguments])))
        if failed:
            raise ToolFailed(answer)
        return answer

    def asked(call):
        out.flush()
        out.write("\\n" + mark + call + "\\n")
        out.flush()
        text = b""
        while True:
            line = answers.readline()
            if not line:
                raise SystemExit("Nobody answers the tools any more.")
            text += line[1:-1]
            if line[:1] != b"+":
                return text
            out.write("\\n" + mark + "\\n")
            out.flush()

    module = types.ModuleType("tools")
    module.call, module.ToolFailed = call, ToolFailed
    module.__getattr__ = lambda name: lambda **arguments: call(name, **arguments)
    sys.modules["tools"] = module
    sys.stdin = open("/dev/null")
    return {"__name__": "__main__", "tools": module}


exec(compile(@CODE@, "<code>", "exec"), _begin())
'''


def program(code: str, mark: str) -> str:
    """The whole program. `mark` begins each line that asks for a tool."""
    filled = {"@MARK@": json.dumps(mark), "@CODE@": json.dumps(code)}
    text = CLIENT
    for name, value in filled.items():
        text = text.replace(name, value)
    return text


def command(program_text: str, mark: str) -> str:
    """The shell command that runs it: its input stays free for the answers."""
    return f"exec python3 -u /dev/fd/3 3<<'{mark}'\n{program_text}\n{mark}\n"
