"""Commands by which work, files or running programs are lost."""

from __future__ import annotations

import re

from hermes_agent.tools.syntax.simple import COMPUTED, Simple, is_known


def deletes_recursively(simple: Simple) -> bool:
    """Removes trees, or empties files so that nothing can bring them back."""
    match simple.program:
        case "rm":
            return simple.has("rR", "--recursive") or any(not is_known(word) for word in simple.operands)
        case "find":
            return "-delete" in simple.arguments
        case "rsync":
            return any(word.startswith("--del") or word == "--remove-source-files" for word in simple.arguments)
        case "mv":
            return bool(simple.operands) and simple.operands[-1] == "/dev/null"
        case "unlink":
            return False
        case program:
            return program in ("shred", "srm", "wipe", "scrub", "rimraf")


def deletes_what_is_found(simple: Simple) -> bool:
    """Removes files that a search found, whatever they are."""
    return simple.program in ("rm", "shred", "unlink") and bool({"find", "xargs", "parallel"} & set(simple.prefixes))


def rewrites_history(simple: Simple) -> bool:
    """Discards work or rewrites what others share."""
    if simple.program == "svn":
        return "revert" in simple.operands and simple.has("R")
    if simple.program == "hg":
        return bool({"strip", "purge"} & set(simple.operands)) or ("update" in simple.operands and simple.has("C"))
    if simple.program == "gh":
        return bool({"delete", "archive", "transfer"} & set(simple.operands[:2])) or ("merge" in simple.operands[:2])
    words = _of_git(simple)
    if simple.program != "git" or not words:
        return False
    if words[0] == "push":
        forced = simple.has("fd", "--force", "--force-with-lease", "--mirror", "--delete", "--prune")
        return forced or any(word.startswith(("+", ":")) for word in words)
    return any(words[0] == first and rule(simple, words) for first, rule in _DISCARDS)


def _of_git(simple: Simple) -> tuple[str, ...]:
    """A git command from its subcommand on."""
    words = list(simple.arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-C", "-c", "--git-dir", "--work-tree") and words:
            words.pop(0)
    return tuple(words)


_DISCARDS = (
    ("reset", lambda simple, _: simple.has("", "--hard", "--merge")),
    ("clean", lambda simple, _: simple.has("f", "--force") and not simple.has("n", "--dry-run")),
    ("checkout", lambda simple, words: "." in words or ":/" in words or simple.has("f", "--force")),
    ("restore", lambda _, words: ("." in words or ":/" in words) and "--staged" not in words),
    ("switch", lambda simple, _: simple.has("f", "--discard-changes", "--force")),
    ("branch", lambda simple, _: simple.has("D") or (simple.has("d", "--delete") and simple.has("f", "--force"))),
    ("stash", lambda _, words: bool({"drop", "clear"} & set(words[:2]))),
    ("reflog", lambda _, words: bool({"expire", "delete"} & set(words[:2]))),
    ("gc", lambda simple, _: any(word.startswith("--prune") for word in simple.arguments)),
    ("update-ref", lambda simple, _: simple.has("d")),
    ("filter-branch", lambda *_: True),
    ("filter-repo", lambda *_: True),
    ("worktree", lambda simple, words: "remove" in words and simple.has("f", "--force")),
    ("submodule", lambda simple, words: "deinit" in words and simple.has("f", "--force")),
    ("tag", lambda simple, _: simple.has("d", "--delete")),
    ("rm", lambda simple, _: simple.has("r") and not simple.has("", "--cached")),
    ("credential", lambda *_: True),
)


def kills_widely(simple: Simple) -> bool:
    """Ends processes that it did not name one by one."""
    if simple.program in ("pkill", "killall", "killall5", "skill", "slay", "xkill"):
        return "-0" not in simple.arguments
    if simple.program == "fuser":
        return simple.has("k", "--kill")
    targets = simple.arguments[1:] or simple.arguments
    return simple.program == "kill" and (
        "-1" in targets[-1:] or "1" in simple.operands or any(COMPUTED in word for word in simple.operands)
    )


def fills(simple: Simple) -> bool:
    """Writes without end, or more than a disk holds."""
    endless = {"/dev/zero", "/dev/urandom", "/dev/random"}
    if simple.program == "dd":
        source = next((word[3:] for word in simple.arguments if word.startswith("if=")), "")
        target = next((word[3:] for word in simple.arguments if word.startswith("of=")), "")
        return source in endless and bool(target) and not any(word.startswith("count=") for word in simple.arguments)
    if simple.program == "fallocate" or (simple.program == "truncate" and simple.value("-s", "--size")):
        return bool(re.search(r"\d{3,}G|\d+[TPE]", simple.value("-l", "-s", "--length", "--size")))
    if simple.program == "yes":
        return any(path not in ("/dev/null",) and not path.isdecimal() for path in simple.writes)
    reads_endless = bool(endless & {*simple.operands, *simple.reads})
    return (
        simple.program in ("cat", "tee", "cp", "pv") and reads_endless and bool(simple.writes or simple.program == "cp")
    )
