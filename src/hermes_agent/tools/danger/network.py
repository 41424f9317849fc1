"""Tests for network dangers: commands that upload data, open connections, or run downloaded code."""

from __future__ import annotations

import re

from hermes_agent.tools.syntax.simple import COMPUTED, PIPE, VARIABLE, Simple, is_a_hook
from hermes_agent.tools.syntax.wrapped import SHELLS

INTERPRETERS = SHELLS | {
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "osascript",
    "Rscript",
    "tclsh",
}
_HERE = r"(\w+://)?([^@/]*@)?(localhost|127(\.\d+){3}|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal)([:/?]|$)"
_MAILERS = frozenset(("mail", "mailx", "mutt", "sendmail", "msmtp", "swaks", "ssmtp"))
_SENDING = (
    *(
        "-T",
        "--upload-file",
        "-F",
        "--form",
        "-d",
        "--data",
        "--data-binary",
        "--data-raw",
        "--data-urlencode",
        "--json",
    ),
    *("--post-file", "--post-data", "--body-file", "--body-data"),
)
_SECRET_NAMES = r"(?i)\$\{?\w*(KEY|TOKEN|SECRET|PASSW|CREDENTIAL)\w*"
_FETCHING_RUNNERS = frozenset(("npx", "go", "pipx", "uvx", "bunx", "deno"))
_TUNNELS = frozenset(("ngrok", "cloudflared", "chisel", "localtunnel", "frpc", "bore", "tmate"))


def runs_what_it_fetches(simple: Simple) -> bool:
    """Runs downloaded code or another program's output through an interpreter, `source` or `eval`."""
    program, first = simple.program, next(iter(simple.operands), "")
    if program == "eval":
        return COMPUTED in "".join(simple.arguments) and not _is_known_hook(simple)
    if program in ("source", "."):
        return PIPE in first or COMPUTED in first or _was_fetched(simple, first) or first == "/dev/stdin"
    if program in INTERPRETERS:
        return _is_fed(simple, first)
    if program in ("make", "gmake"):
        return PIPE in "".join(simple.operands) or simple.value("-f", "--file", "--makefile") in ("-", "/dev/stdin")
    runs = program in _FETCHING_RUNNERS or (program in ("pip", "pip3") and first == "install")
    fetches = runs and any("://" in word for word in simple.operands)
    return fetches or _was_fetched(simple, simple.words[0] if simple.words else "")


def _is_fed(simple: Simple, script: str) -> bool:
    """Whether an interpreter's program comes from another program or a download."""
    if PIPE in "".join((*simple.operands, *simple.reads)) or _was_fetched(simple, script):
        return True
    if any(path.startswith(("/dev/tcp", "/dev/udp")) for path in simple.reads):
        return True
    return bool(simple.fed_by) and simple.stdin is None and not _names_a_script(simple)


def _is_known_hook(simple: Simple) -> bool:
    found = re.search(r"\$\((.*)\)|`(.*)`", simple.source, re.DOTALL)
    return found is not None and is_a_hook(found[1] or found[2] or "")


def _was_fetched(simple: Simple, path: str) -> bool:
    key = path if path.startswith("/") else f"{simple.folder.rstrip('/')}/{path.removeprefix('./')}"
    return bool(path) and key in simple.files and simple.files[key] is None


def _names_a_script(simple: Simple) -> bool:
    """Whether an interpreter has a script of its own, so that it reads the pipe as data."""
    if any(re.fullmatch(r"-\w*[cmeErp]|--eval|--print", word) for word in simple.arguments):
        return True
    return simple.operands not in ((), ("-",), ("/dev/stdin",)) and "-s" not in simple.arguments


def holds_an_unknown_script(simple: Simple) -> bool:
    """Gives a shell a script with parts that are unknown before it runs."""
    if simple.program in SHELLS | {"su"}:
        script = simple.value("-c", "-lc", "-ec", "-xc", "--command")
        return any(sign in script for sign in (COMPUTED, VARIABLE)) and _may_be_code(script)
    return False


def _may_be_code(script: str) -> bool:
    return bool(re.search(rf"(^|[;&|(\n`]\s*)[{COMPUTED}{VARIABLE}]", script)) or COMPUTED in script


def opens_a_door(simple: Simple) -> bool:
    """Connects a program with the network in both directions."""
    redirects = (*simple.writes, *simple.reads, *simple.arguments)
    if any(
        re.search(r"/dev/(tcp|udp)/|/inet/(tcp|udp)", path)
        for path in redirects
        if simple.program not in ("grep", "echo")
    ):
        return True
    match simple.program:
        case "nc" | "ncat" | "netcat" | "cryptcat":
            probes = simple.has("z") or any(re.match(_HERE, word) for word in simple.operands)
            return simple.has("ec", "--exec", "--sh-exec") or simple.has("l", "--listen") or not probes
        case "socat":
            return True
        case "telnet" | "ftp" | "tftp" | "smbclient" | "lftp":
            return not any(re.match(_HERE, word) for word in simple.operands)
        case "ssh":
            return simple.has("RDLw")
        case program:
            return program in _TUNNELS


def sends_away(simple: Simple) -> bool:
    """Sends files, secrets or another program's output to another machine."""
    operands = simple.operands
    match simple.program:
        case "scp" | "rsync" | "sftp":
            return simple.program == "sftp" or bool(re.match(_REMOTE, operands[-1] if operands else ""))
        case "rclone":
            return bool({"copy", "sync", "move", "delete", "purge"} & set(operands))
        case "curl" | "wget" | "http" | "https" | "xh" | "httpie":
            addresses = _addresses(simple)
            return not (addresses and all(re.match(_HERE, word) for word in addresses)) and _carries(simple)
        case "dig" | "nslookup" | "host" | "ping" | "whois" | "finger":
            return bool(re.search(r"\$\(|`", simple.source) or re.search(_SECRET_NAMES, simple.source))
        case "aws":
            return bool({"cp", "sync", "mv"} & set(operands)) and "s3" in operands and operands[-1].startswith("s3://")
        case program:
            gists = program == "gist" or (program == "gh" and {"gist", "create"} <= set(operands))
            return gists or (program in _MAILERS and bool(simple.arguments))


_REMOTE = r"[\w.-]+@?[\w.-]*:|(rsync|s?ftp)://"


def _addresses(simple: Simple) -> list[str]:
    whole = [word for word in simple.operands if "://" in word]
    return whole or [word for word in simple.operands if re.match(r"localhost|[\w-]+(\.[\w-]+)+(:\d+)?(/|$)", word)][:1]


def _carries(simple: Simple) -> bool:
    """Whether a request uploads a file, program output or a secret, or deletes something."""
    given = [simple.value(option) for option in _SENDING]
    from_file = any(value.startswith(("@", "<")) or re.search(r"=[@<]", value) for value in given)
    uploads = bool(simple.value("-T", "--upload-file", "--post-file", "--body-file"))
    deletes = simple.value("-X", "--request", "--method").upper() == "DELETE" or "DELETE" in simple.operands[:1]
    return (
        from_file
        or uploads
        or deletes
        or COMPUTED in "".join(simple.arguments)
        or bool(re.search(_SECRET_NAMES, simple.source))
    )


def acts_elsewhere(simple: Simple) -> bool:
    """Runs commands on another machine."""
    return (
        simple.program in ("ssh", "mosh", "ansible", "ansible-playbook", "pssh") and "-V" not in simple.arguments
    ) or "ssh" in simple.prefixes
