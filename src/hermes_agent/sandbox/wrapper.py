"""Shell script around each command: records its process, saves its shell state, and writes its exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from shlex import quote
from signal import Signals
from types import MappingProxyType

from hermes_agent.host.process_table import MARK as MARK

HEARS = "--default-signal=INT,QUIT"
COMMENT = "# "
NOTE = r"printf '# %s\n'"  # some shells' echo reads backslashes
# Words that replace the shell or its exit trap; such a command runs in a subshell (one fork, about 1 ms).
_TAKES_OVER = r"\b(exec|trap)\b"
# The outer shell gets the signals of the group too, and must live to write down how the inner one took them. A trap
# that does something is not inherited; an ignored signal would be.
_SIGNALS = ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM")
_OUTLIVE = f"trap : {' '.join(_SIGNALS)}"
# A shell that a signal ends runs its exit trap with the code of the command before: 0, for one that was killed.
_TELL = "; ".join(f"trap 'exit {128 + Signals[f'SIG{name}']}' {name}" for name in _SIGNALS)
# With noclobber the shell opens `pid` with O_EXCL: whoever creates it decides whether the command ever runs. It is a
# relative name on purpose: the shell begins in the folder that was claimed for it, even if that was moved meanwhile.
CLAIM = """\
set -C; { IFS= read -r _h </proc/$$/stat || _h=$$; } 2>/dev/null; echo "$_h" >pid || exit 125; set +C; unset _h"""


_EXPORTED = re.compile(
    r"^(?:declare -x|export) (\w+)(?:=(.*?))?(?=^(?:declare -x|export) \w|\Z)", re.MULTILINE | re.DOTALL
)
_MARKED = re.compile(rf"^(?:declare -x|export) {MARK}=.*\n", re.MULTILINE)
_PIECES = r"'([^']*)'|\"([^\"]*)\""

INLINE = 60_000  # characters; one argument of a program may have 128 kB (MAX_ARG_STRLEN), quoting included


def begin(folder: str, cwd: str, variables: Mapping[str, str] = MappingProxyType({}), mark: str = MARK) -> str:
    """Shell code before a command: sets its mark (the path of its record, since ids repeat between homes), these
    variables, whatever an earlier command of its shell left in them, and its folder."""
    told = "".join(f" {name}={quote(value)}" for name, value in {mark: folder, **variables}.items())
    return f"export{told}\ncd {quote(cwd)} || exit 126"


def begun(folder: str, limits: str) -> str:
    """Shell code with which a jailed command notes that it has begun, where its end will be noted; then its limits."""
    return f"echo 1<>{quote(folder)}/exit\n{limits}"


def dropping(names: Iterable[str]) -> str:
    """Shell code after the directory that is kept: these variables belong to one command alone."""
    return "".join(f"; unset {name}" for name in names)


def on_terminal(run: str) -> str:
    """Shell code that runs `run` on its own terminal, by the `script` of util-linux: what is written to its input is
    typed there, and its output is what appears. `script` takes the shell from SHELL and returns its code. A shell
    that was started in the background ignores Ctrl-C for good; `env` undoes that where it can."""
    missing = "There is no `script` here (util-linux), which a terminal needs."
    typed = f"stty rows 24 cols 80\n{run}"
    return (
        f"command -v script >/dev/null 2>&1 || {{ echo {quote(missing)}; exit 127; }}\n"
        f"_h='env {HEARS}'; $_h true 2>/dev/null || _h=\n"
        f"SHELL=${{BASH:-/bin/sh}} TERM=xterm $_h script -qefc {quote(typed)} /dev/null"
    )


def script(*, folder: str, begins: str, kept: str, keeps_as: str, text: str, counts: bool = False) -> str:
    """The script for `text` (from `folder`/command where it is longer than `INLINE`), to follow a `CLAIM`. `begins`
    is the code from `begin`. With `counts` it also writes the number of processes at its end, useful in a process
    table of its own.

    `kept` is the file of the kept shell to start from, or empty. Where the command saves its state, `keeps_as` is
    the directory to note in it as shell code (`"$PWD"` for where it ends up), otherwise empty. `dropping` adds
    variables that are not kept.
    """
    lines = [
        f". {quote(kept)}" if kept else "",
        begins,
    ]
    run = f"eval {quote(text)}" if len(text) < INLINE else f". {quote(folder)}/command"
    keep = f"{{ {NOTE} {keeps_as}; export -p; }} >|{quote(folder)}/env; " if keeps_as else ""
    count = ("set -- /proc/[0-9]*; ", " $#") if counts else ("", "")
    # Written over what stands there, not in an emptied file: a shell that dies here leaves the end that was noted.
    end = f"{count[0]}echo $_h{count[1]} 1<>{quote(folder)}/exit"
    quiet = "_h=$?; {{ set +exu; {0}}} 2>/dev/null"
    if re.search(_TAKES_OVER, text):
        inner = f"trap {quote(quiet.format(keep))} EXIT; " if keep else ""
        lines += [_OUTLIVE, f"( {inner}{run}\n)", f"_h=$?; {end}; exit $_h"]
    else:
        lines += [f"trap {quote(quiet.format(f'{keep}{end}; '))} EXIT", _TELL, run]
    return "\n".join(filter(None, lines))


def reached_script(
    *, kept: str, env: Mapping[str, str], keeps: bool, has_workdir: bool, text: str, pty: bool = False
) -> str:
    """The same for a command under `supervisor.sh`, which gives its folder ($1), its kept shell ($2), and its mark.
    `kept` is the file of the kept shell, or empty; `env` is the environment of a new shell."""
    told = "\n".join(f"export {name}={quote(value)}" for name, value in env.items())
    left = '"$_kept_in"' if has_workdir else '"$PWD"'
    record = '"${0%/script}/env"'
    keep = f"_h=$?; {{ set +exu; {{ {NOTE} {left}; export -p; }} >|{record}; }} 2>/dev/null"
    lines = [
        "_kept_in=$2",
        f"if [ -f {quote(kept)} ]; then . {quote(kept)}\nelse :\n{told}\nfi" if kept else told,
        'cd "$1" || exit 126',
        "shift 2",
        f"trap {quote(keep)} EXIT" if keeps else "",
        on_terminal(text) if pty else f"eval {quote(text)}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def is_same_shell(kept: str, other: str) -> bool:
    """Whether two files of a kept shell differ only in the command that left them."""
    return _MARKED.sub("", kept) == _MARKED.sub("", other)


def kept_directory(kept: str) -> str:
    """The directory in the first line of a kept shell's file; empty where there is none."""
    first, _, _ = kept.partition("\n")
    return first.removeprefix(COMMENT) if first.startswith(COMMENT) else ""


def kept_variables(kept: str) -> dict[str, str]:
    """The exported variables in a kept shell's file, in the format of `export -p` of bash or of a plain sh."""
    return {found[1]: _unquoted(found[2] or "") for found in _EXPORTED.finditer(kept)}


def _unquoted(value: str) -> str:
    value = value.removesuffix("\n")
    if value.startswith("'"):
        return "".join(plain or quoted for plain, quoted in re.findall(_PIECES, value))
    return re.sub(r"\\([\"\\$`])", r"\1", value[1:-1]) if value.startswith('"') else value
