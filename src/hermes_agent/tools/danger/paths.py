"""Path analysis of commands: whether a path is a vital folder or may hold credentials, and where a command writes."""

from __future__ import annotations

import os.path
import re
from fnmatch import fnmatchcase
from pathlib import Path

from hermes_agent.tools.syntax.simple import NAME, Simple, is_known

# Folders whose loss is the loss of the machine or of the person's work.
VITAL = frozenset(
    (
        *("/", "~", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/mnt", "/opt", "/private"),
        *("/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin"),
        *("/usr/share", "/var", "/var/lib", "/Applications", "/Library", "/System", "/Users"),
    )
)
CREDENTIALS = (
    r"(^|[/=@:'\"( ~])(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.netrc|\.git-credentials|\.pgpass|\.password-store"
    r"|\.vault-token|\.docker/config\.json|\.config/(gcloud|gh|op|rclone|google-chrome|chromium)|\.mozilla|\.my\.cnf|\.npmrc|\.pypirc"
    r"|\.(bash|zsh|python|psql|mysql)_history|\.local/share/keyrings|Library/Keychains|login\.keychain)(/|$|['\") ])"
    r"|/etc/(shadow|gshadow|sudoers|master\.passwd|krb5\.keytab|ssl/private)|/proc/(\w+|\*|self)/environ"
    r"|(^|/)(id_(rsa|dsa|ecdsa|ed25519)\w*)($|['\") ])|\.hermes/\.env|(^|/)auth\.json$"
)
_ELSEWHERE = r"[\w.-]+@?[\w.-]*:(?!/dev)"
# Options that name what a program writes.
OUTPUTS: dict[str, tuple[str, ...]] = {
    "curl": ("-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii"),
    "wget": ("-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file"),
    "sort": ("-o", "--output"),
    "gcc": ("-o",),
    "cc": ("-o",),
    "g++": ("-o",),
    "clang": ("-o",),
    "ld": ("-o",),
    "openssl": ("-out",),
    "pandoc": ("-o", "--output"),
    "unzip": ("-d",),
    "7z": ("-o",),
    "ssh-keygen": ("-f",),
    "xxd": (),
    "tcpdump": ("-w",),
    "gpg": ("-o", "--output"),
    "find": ("-fprintf", "-fprint0", "-fprint", "-fls"),
}
# Which of their operands some programs write to.
_SOME = {"patch": slice(0, 1), "split": slice(1, 2)}
_LAST = frozenset(("cp", "mv", "install", "rsync", "ln", "scp", "link"))
_ALL = frozenset(
    ("tee", "touch", "mkdir", "truncate", "rm", "rmdir", "unlink", "shred", "fallocate", "mkfifo", "chattr")
)


def is_vital(simple: Simple, words: tuple[str, ...]) -> bool:
    """Whether one of these paths is a vital folder as a whole: `/etc`, `/etc/`, `/etc/*` and `/e*` are."""
    return any(_vital(simple.folder, word) for word in words if word and is_known(word))


def _vital(folder: str, word: str) -> bool:
    stripped = re.sub(rf"(^|/+)(\.?\*+|\.\[\^\.\]\*|\.|{NAME})?$", "", word)
    if not stripped:
        target = "/" if word.startswith("/") else folder
    else:
        target = os.path.normpath(stripped) if stripped[:1] == "~" else os.path.normpath(Path(folder) / stripped)
    if target.startswith("//"):
        target = target[1:]
    if re.fullmatch(r"~\w*|/home/[^/]+|/Users/[^/]+", target):
        return True
    return any(target == vital or (re.search(r"[*?\[]", target) and fnmatchcase(vital, target)) for vital in VITAL)


def touches_credentials(simple: Simple) -> bool:
    """Whether it names a file with keys or passwords, or a shell history."""
    if simple.program in ("echo", "printf", "ssh-keygen", "chmod", "ls", "test", "[", "git", "mkdir", "stat", "man"):
        words: tuple[str, ...] = ()
        if simple.program in ("chmod", "ls", "mkdir", "stat", "test", "[", "git"):
            words = tuple(word for word in simple.operands if re.search(r"id_\w+$", word) and simple.program == "git")
    else:
        words = simple.arguments
    public = re.compile(r"\.pub$|known_hosts$|\.ssh/config$")
    if simple.program in ("gpg", "gpg2") and any("secret-key" in word for word in simple.arguments):
        return True
    named = [word for word in (*words, *simple.writes, *simple.reads) if not public.search(word)]
    return any(re.search(CREDENTIALS, word) for word in named)


def written(simple: Simple) -> list[str]:
    """Local paths that this command writes to, as far as its words tell."""
    found = list(simple.writes)
    program, operands = simple.program, simple.operands
    if program in _LAST and not (program == "install" and simple.has("d")):
        target = simple.value("-t", "--target-directory")
        found += [target] if target else operands[-1:] if len(operands) > 1 else []
        if program == "mv":
            found += operands[:-1]
        if program == "ln" and len(operands) == 1:
            found.append(".")
    elif program in _ALL:
        found += _without_values(simple)
    elif program in _SOME:
        found += operands[_SOME[program]]
    elif program in OUTPUTS:
        found += filter(None, (simple.value(option) for option in OUTPUTS[program]))
    else:
        found += _of_editors(simple)
    return [path for path in found if path and not re.match(_ELSEWHERE, path)]


def _without_values(simple: Simple) -> tuple[str, ...]:
    valued = {"-s", "--size", "-r", "--reference", "-l", "--length", "-m", "--mode", "-n", "-o", "-d", "-t", "--date"}
    drop = {
        index + 1
        for index, word in enumerate(simple.arguments)
        if word in valued and simple.program not in ("rm", "mkdir")
    }
    kept = tuple(word for index, word in enumerate(simple.arguments) if index not in drop and not word.startswith("-"))
    return tuple(word for word in kept if word[:1] not in ("+", "=")) if simple.program == "chattr" else kept


def _of_editors(simple: Simple) -> tuple[str, ...]:
    match simple.program:
        case "sed" if simple.has("i", "--in-place"):
            given = any(word.startswith(("-e", "-f", "--expression")) for word in simple.arguments)
            return simple.operands if given else simple.operands[1:]
        case "dd":
            return tuple(word[3:] for word in simple.arguments if word.startswith("of="))
        case "tar" if simple.arguments:
            return _of_tar(simple)
        case "git" if "clone" in simple.operands[:1]:
            return simple.operands[2:3]
        case program:
            in_place = program in ("perl", "ruby") and any(re.match(r"-\w*i", word) for word in simple.arguments)
            after_mode = program in ("chmod", "chown", "chgrp", "setfacl")
            return simple.operands[program not in _EDITORS :] if in_place or after_mode or program in _EDITORS else ()


_EDITORS = ("ed", "ex", "nano", "vi", "vim", "emacs")


def _of_tar(simple: Simple) -> tuple[str, ...]:
    first = simple.arguments[0]
    letters = first if not first.startswith("--") else ""
    if "x" in letters or "--extract" in simple.arguments:
        return (simple.value("-C", "--directory") or ".",)
    if "c" in letters or "--create" in simple.arguments:
        named = simple.value("--file") or (simple.arguments[1] if "f" in letters and len(simple.arguments) > 1 else "")
        return (named,)
    return ()
