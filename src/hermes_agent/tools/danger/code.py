"""Analyzes inline code in commands (`python -c`, `perl -e`, `awk`, SQL) for dangerous actions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hermes_agent.tools.danger.paths import CREDENTIALS
from hermes_agent.tools.syntax.simple import Simple, is_known

RUNS = "it holds code that runs other programs or code"
DELETES = "it holds code that deletes"
WRITES = "it holds code that writes where nobody can tell"
SENDS = "it holds code that sends or listens"
READS_KEYS = "it touches credentials"
UNREADABLE = "it holds code that cannot be read"

_MODULES = {
    **dict.fromkeys(
        ("subprocess", "pty", "ctypes", "importlib", "runpy", "code", "pickle", "marshal", "cffi", "pip"), RUNS
    ),
    **dict.fromkeys(
        ("socket", "socketserver", "smtpd", "smtplib", "ftplib", "telnetlib", "paramiko", "asyncssh"), SENDS
    ),
    **dict.fromkeys(("http.server", "xmlrpc"), SENDS),
}
_NAMES = {
    **dict.fromkeys(("exec", "eval", "__import__", "breakpoint", "system", "popen", "getoutput", "run_path"), RUNS),
    **dict.fromkeys(("execv", "execve", "execvp", "execl", "execlp", "execle", "execvpe", "fork", "forkpty"), RUNS),
    **dict.fromkeys(("spawnl", "spawnv", "spawnlp", "spawnvp", "posix_spawn", "startfile", "setuid", "setgid"), RUNS),
    **dict.fromkeys(("create_subprocess_exec", "create_subprocess_shell", "FunctionType", "CodeType"), RUNS),
    **dict.fromkeys(("__subclasses__", "__globals__", "__builtins__", "__code__"), RUNS),
    **dict.fromkeys(("rmtree", "unlink", "rmdir", "removedirs", "kill", "killpg", "truncate"), DELETES),
    **dict.fromkeys(("open_connection", "start_server", "urlretrieve"), SENDS),
}
_OF_MODULES = {
    **dict.fromkeys(("os.remove", "os.rename", "os.replace", "shutil.move", "os.chmod", "os.chown"), DELETES),
    **dict.fromkeys(("requests.post", "requests.put", "httpx.post", "httpx.put"), SENDS),
    "builtins.compile": RUNS,
}
_OTHERS: dict[str, str] = {
    "perl": r"(?i)\b(system|exec|fork|syscall|require|eval)\b|`|qx|socket|\|\s*[\"']"
    r"|open\s*\(?[^,]+,\s*[\"']?\s*[>|+]|POSIX",
    "ruby": r"(?i)\b(system|exec|fork|spawn|popen3?|syscall|eval|Kernel|FileUtils)\b|`|%x|Socket|File\.(write|delete)",
    "node": r"child_process|\b(exec|spawn|fork|execSync|spawnSync|eval)\s*\(|net\.|https?\.request|fetch\("
    r"|process\.binding|Function\(",
    "php": r"(?i)\b(system|exec|shell_exec|passthru|popen|proc_open|pcntl_exec|eval|fsockopen|assert"
    r"|file_put_contents)\b|`",
    "lua": r"os\.(execute|remove|rename)|io\.popen|loadstring|\bload\b|socket|io\.open",
    "awk": r"system\s*\(|\|\s*\"|\|\s*getline|\"\s*\|&|print[^|]*\|\s*[\"\w]|/inet/|>\s*\"?/",
    "emacs": r"delete-(file|directory)|shell-command|call-process|start-process|make-process|write-region",
    "expect": r"\b(spawn|exec|system)\b",
    "osascript": r"do shell script|delete|empty",
    "sed": r"(^|;|\d|/)\s*e(\s|$)|/[gp0-9]*e[gp0-9]*$",
}
_SAME = {
    "irb": "ruby",
    "mawk": "awk",
    "gawk": "awk",
    "nawk": "awk",
    "nodejs": "node",
    "bun": "node",
    "deno": "node",
    "tclsh": "lua",
    "luajit": "lua",
}
_LETTERS = {"php": "rB", "expect": "c"}
_DELETING = r"(?i)rm\s+-\w*r|rimraf|unlink|rmSync|rmdirSync|rmtree|rm_rf|File\.delete|DirectoryIterator"
_SQL = (
    r"(?i)\bDROP\s+(TABLE|DATABASE|SCHEMA|USER|INDEX|VIEW)|\bTRUNCATE\b|\bDELETE\s+FROM\s+[\w.\"`]+\s*(;|$|[\"'])|FLUSHALL|FLUSHDB"
    r"|dropDatabase|\.drop\(|\.remove\(\s*\{\s*\}|deleteMany\(\s*\{\s*\}|\bUPDATE\s+\w+\s+SET\s+(?!.*\bWHERE\b)|COPY\s.*\bPROGRAM\b"
    r"|xp_cmdshell|INTO\s+OUTFILE|\\!|\.(shell|system)\b|CONFIG\s+SET|SHUTDOWN\b|ALTER\s+USER|GRANT\s"
)
CLIENTS = frozenset(
    (
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "sqlite",
        "mongosh",
        "mongo",
        "redis-cli",
        "clickhouse-client",
        "sqlcmd",
        "duckdb",
    )
)


def held_by(simple: Simple) -> Iterator[tuple[str, list[str]]]:
    """Dangers of the code in a command: the reason, and the paths it writes to if that is the reason."""
    program = re.sub(r"[\d.]+$", "", simple.program)
    if program in ("python", "pypy", "ipython"):
        for code in _codes(simple, "c"):
            yield from python(code)
        if (module := simple.value("-m")) not in ("", "http.server"):
            yield from _imported([module])
    elif program in CLIENTS:
        texts = [*simple.arguments, simple.stdin or ""]
        if any(re.search(_SQL, text) for text in texts) or not all(map(is_known, texts[-1:])):
            yield DELETES, []
    elif (other := _SAME.get(program, program)) in _OTHERS:
        yield from _by_hints(simple, _OTHERS[other], other)


def _by_hints(simple: Simple, pattern: str, language: str) -> Iterator[tuple[str, list[str]]]:
    if language in ("awk", "sed", "osascript"):
        codes = [word for word in simple.arguments if not word.startswith("--")]
    else:
        codes = list(_codes(simple, _LETTERS.get(language, "eErEp")))
    for code in codes:
        if re.search(_DELETING, code):
            yield DELETES, []
        if re.search(pattern, code):
            yield RUNS, []
        if re.search(CREDENTIALS, code):
            yield READS_KEYS, []


def _codes(simple: Simple, letters: str) -> Iterator[str]:
    """The programs given as arguments, and the one from a pipe or here-document."""
    inline = False
    for index, word in enumerate(simple.arguments):
        found = re.fullmatch(rf"-\w*[{letters}](.*)|--(eval|print|exec|run)", word)
        if found and index + 1 < len(simple.arguments):
            inline = True
            yield simple.arguments[index + 1]
    if not inline and simple.stdin is not None and simple.operands in ((), ("-",)):
        yield simple.stdin


def python(code: str) -> Iterator[tuple[str, list[str]]]:
    """Dangers of a Python program, found in its syntax tree."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield UNREADABLE, []
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from _imported([each.name for each in names])
            case ast.ImportFrom(module=module, names=names):
                yield from _imported([module or "", *(f"{module}.{each.name}" for each in names)])
                yield from ((reason, []) for each in names if (reason := _NAMES.get(each.name)))
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if reason := _NAMES.get(name) or _OF_MODULES.get(ast.unparse(node)):
                    yield reason, []
            case ast.Call():
                yield from _called(node)
            case ast.Constant(value=str() as text) if re.search(CREDENTIALS, text):
                yield READS_KEYS, []
            case _:
                pass


def _imported(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    for name in names:
        reason = _MODULES.get(name) or _MODULES.get(name.partition(".")[0]) or _OF_MODULES.get(name)
        if reason:
            yield reason, []


def _called(call: ast.Call) -> Iterator[tuple[str, list[str]]]:
    name = ast.unparse(call.func)
    if name in ("getattr", "globals", "vars", "setattr") and not all(
        isinstance(each, ast.Constant) for each in call.args[1:2]
    ):
        yield RUNS, []
    if name == "compile":
        yield RUNS, []
    last = name.rpartition(".")[2]
    if last in ("urlopen", "Request") and (call.args[1:] or any(word.arg == "data" for word in call.keywords)):
        yield SENDS, []
    if last == "open" and _writes(call, 0 if name.endswith(").open") else 1):
        yield WRITES, _texts(call.args[:1])
    elif last in ("write_text", "write_bytes", "touch", "mkdir", "makedirs") and isinstance(call.func, ast.Attribute):
        inner = call.func.value
        yield WRITES, _texts(inner.args[:1] if isinstance(inner, ast.Call) else call.args[:1])


def _writes(call: ast.Call, position: int) -> bool:
    mode = call.args[position] if len(call.args) > position else None
    mode = next((each.value for each in call.keywords if each.arg == "mode"), mode)
    if mode is None:
        return False
    return not (isinstance(mode, ast.Constant) and isinstance(mode.value, str) and not set(mode.value) & set("wax+"))


def _texts(nodes: list[ast.expr]) -> list[str]:
    """The literal paths; an unknown one counts as outside."""
    return [
        node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "~" for node in nodes
    ] or ["~"]
