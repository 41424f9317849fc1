"""Judges shell commands: the hard block, and the few questions for what no wall and no checkpoint holds."""

from __future__ import annotations

import base64
import codecs
import os.path
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from hermes_agent.tools.danger.shell import SHELLS, Simple, Unreadable, is_known, read, unescaped
from hermes_agent.tools.danger.verdict import (
    COMPUTED,
    DEVICES,
    NAME,
    PIPE,
    VARIABLE,
    Verdict,
    Where,
    is_below,
    named,
)

VITAL = named(
    "/ ~ /bin /boot /dev /etc /home /lib /lib32 /lib64 /mnt /opt /private /proc /root /run /sbin /srv /sys /usr"
    " /usr/bin /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib /Applications /Library /System /Users"
)
"""Folders whose loss is the loss of the machine or of the person's work."""
_LOOKS = r"(?!.* (-l|--list|-V|--version|--help|-h|print|-p)( |$))"
_DEVICE = (
    r"(/dev/(?!(fd|shm|pts|tcp|udp|null|zero|full|std\w+|loop-control|tty\w*|u?random|net)\b)\w|/dev/k?mem"
    r"|/proc/(sysrq-trigger|kcore|mem)|/sys/power/)"
)
_OFF = "shutdown|reboot|halt|poweroff"
DESTROYS = "it would destroy the system or a home folder"
FORK_BOMB = "it is a fork bomb"
# Rules: a reason, and what a program with its words looks like that it is for. `> PATH` is a redirection.
BLOCKS = {
    "it would erase a disk": rf"(mkfs\S*|mkswap|wipefs|[cs]?fdisk|[sc]?gdisk|blkdiscard|mke2fs|mkntfs|mkdosfs|newfs\S*"
    rf"|(lv|vg|pv)remove) {_LOOKS}|badblocks .*-\w*[wn]|hdparm .*--(security|trim|write|make-bad)"
    r"|nvme (format|sanitize|write-zeroes)|zpool (destroy|labelclear)|cryptsetup .*(luksFormat|erase|luksErase|reencrypt)"
    r"|diskutil (?i:erase|partitionDisk|zeroDisk|secureErase)|dmsetup (wipe_table|remove_all)|format [A-Za-z]:"
    r"|parted .*(mklabel|mkpart|rm|mktable)",
    "it would write over a device": rf".*(> |of=){_DEVICE}|(tee|shred|truncate|scrub) (.* )?{_DEVICE}"
    rf"|(cp|mv|pv|install) (.* )?{_DEVICE}\S*$",
    "it would turn the machine off": rf"({_OFF})(?!.* (--help|-c|--version))( |$)|(tel)?init (.* )?[06]$"
    rf"|systemctl (.* )?({_OFF}|kexec|suspend|hibernate|emergency|rescue)",
}
_HERE = r"(\w+://)?([^@/ ]*@)?(localhost|127(\.\d+){3}|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal)([:/? ]|$)"
_PUSHING = r"git (-\S+ (\S*[/=.]\S* )?)*(push|send-email)|hg (push|email)|(docker|podman) (push|login|image push)"
LEAVES = {
    "it acts as another user": r"(sudo|doas|su|pkexec|runuser|gosu|runas|login|chroot|nsenter|systemd-run|capsh|newgrp|sg"
    r"|machinectl)(?! (-V|--version|--help|-h|-l|-v|-k)( |$))( |$)",
    "it publishes, or changes what others use": rf"({_PUSHING}|(npm|pnpm|yarn|cargo|gem|poetry|twine|flit|hatch|uv|vsce) (run )?"
    r"(publish|unpublish|upload|yank|owner|deprecate)|(gh|glab) \w+ (?!list|view|status|diff|checks|clone|checkout)\w+"
    r"|kubectl (.* )?(delete|drain|cordon|taint|exec|replace|patch|scale|apply|edit|cp)|helm (uninstall|install|upgrade"
    r"|rollback)|(terraform|tofu|pulumi) (apply|destroy|import|taint|state|up)|(vercel|netlify|heroku|fly|flyctl) (.* )?"
    r"(deploy|remove|rm|\S+:(destroy|reset|scale)|--prod)|(aws|gcloud|az|gsutil|doctl|hcloud) .*\b(cp|mv|sync|rb|rm|put"
    r"|create|delete|stop|terminate|deploy)\b)(?!.* (--help|--dry-run|-h)( |$))( |$|-)",
    "it acts on another machine": rf".*/dev/(tcp|udp)/|ssh (?!-V)|(scp|rsync) .*[\w.-]:\S*$|(rsync|scp) .*\w+://\S*$|(sftp"
    r"|mosh|ansible\S*|pssh|mail|mailx|mutt|sendmail|msmtp|swaks|gist|ngrok|cloudflared|chisel|localtunnel|frpc|bore|tmate|nc"
    rf"|ncat|netcat|cryptcat|socat|telnet|l?ftp|tftp|smbclient|rclone) (?!(.* )?({_HERE}|--version|--help))",
}
"""What is of no use inside a wall."""
HELD = {
    "it sends something to another machine": rf"(curl|wget|https?|xh|httpie) (?!(.* )?{_HERE})(.* )?(-\w*[dFT]($| |\S)|--(data|form|json"
    rf"|upload-file|post-|body-)|(-X ?|--request[ =]|--method=|)(POST|PUT|PATCH|DELETE) |\S*{COMPUTED})|(dig|nslookup|host|ping"
    rf"|whois) .*[{COMPUTED}\ue000]",
    "it discards versions that no checkpoint holds": r"git (-\S+ )*(branch .*(-D|--delete)|stash (drop|clear)|reflog (expire|delete)"
    r"|gc .*--prune|update-ref .*-d|filter-(branch|repo)|tag .*(-d|--delete)|clean .*-\w*[xX]|worktree remove .*-f)",
}
"""What neither a wall nor a checkpoint holds."""
BARE = {
    "it runs what another program prints": rf"[^ ]*[{COMPUTED}\ue000{NAME}]|(source|\.|eval|\S*sh|python\S*|perl|ruby|node|php) ([^>]* )?"
    rf"\S*[{COMPUTED}{PIPE}]",
    "it touches credentials": r"(?!echo|printf|ssh-keygen|chmod|ls |mkdir|stat|man|git )(.*[/=@:'\"( ~])?((\.ssh|\.gnupg|\.aws|\.azure|\.kube"
    r"|\.netrc|\.git-credentials|\.pgpass|\.password-store|\.npmrc|\.pypirc|\.docker/config\.json|\.config/(gcloud|gh|op|rclone)|\.mozilla"
    r"|\.\w+_history|\.local/share/keyrings|Library/Keychains)(/(?!config\b|known_hosts|\S*\.pub\b)| |$)|/etc/(g?shadow|sudoers|ssl/private)"
    r"|/proc/\S+/environ|id_(rsa|dsa|ecdsa|ed25519)( |$)|\.hermes/\.env|/auth\.json( |$))",
}
"""What only a wall would hold."""
UNHELD = "no wall can be had here to hold what it does"
READERS = named("cat echo false grep head ls pwd stat tail true wc cd which du df basename dirname realpath")
"""Programs that change nothing, whatever their arguments are; a redirection is looked at by itself. This is a hint, not
a wall: functions, aliases and the PATH of a kept shell can give these names another meaning."""
_INTERPRETERS = SHELLS | named("python python2 python3 perl ruby node php lua osascript Rscript tclsh")
_TALKERS = named("echo printf grep egrep fgrep rg ag ack cat tee man which type gh jq less head tail ls")
_TALKS_OF_GIT = named("commit log grep tag notes show blame diff stash branch checkout switch add merge")
_DELETERS = named("rm srm rimraf trash rmtree rmSync rmdirSync rm_rf rm_r remove_dir_all removeSync")
_STRONG = _DELETERS | named("dd chmod chown chgrp find wipefs mkswap fdisk sfdisk sgdisk blkdiscard mke2fs shred")
_NARROWING = re.compile(r"-(i?name|i?path|[acm]time|[acm]min|size|i?regex|user|newer|empty)")
_BOMB = re.compile(
    r"([\w:.]+)\(\)[{(]([^}]*[|;&{(])?\1[|&]+\1|function([\w:.]+?)(\(\))?\{[^}]*\3[|&]+\3|forkwhilefork"
    r"|while\W*(1|[tT]rue)\W[^;]*fork\("
)


def judge(command: str, where: Where) -> Verdict:
    """The verdict on a command; follows `cd`."""
    try:
        simples = read(command, where.folder)
    except (Unreadable, RecursionError) as error:
        asks = () if where.walled else (f"it cannot be read as a command ({error})",)
        return Verdict(blocked=_blocked([], command) or _shape(command, where.folder), asks=asks)
    reason = _blocked(simples, command)
    return Verdict(blocked=reason) if reason else judged(simples, where)


def judged(simples: list[Simple], where: Where) -> Verdict:
    """The questions about programs that were read."""
    leaves = [reason for simple in simples for reason in _fitting(LEAVES, simple)]
    asks = (*leaves, *(reason for simple in simples for reason in _reasons(simple, where)))
    return Verdict(asks=tuple(dict.fromkeys(asks)), leaves=bool(leaves))


def _fitting(rules: dict[str, str], simple: Simple) -> Iterator[str]:
    line = " ".join((simple.program, *simple.words[1:], *(f"> {path}" for path in simple.writes)))
    return (reason for reason, pattern in rules.items() if re.match(pattern, line, re.DOTALL))


def _blocked(simples: list[Simple], raw: str) -> str:
    """Why the command never runs: one of its programs destroys, or text that is run does; empty if none."""
    if _BOMB.search(re.sub(r"\s+", "", raw)):
        return FORK_BOMB
    for place, simple in enumerate(simples):
        texts = [*simple.words, " ".join(simple.words), simple.stdin]
        talks = simple.program in _TALKERS or (
            simple.program == "git" and simple.words[1:2] and simple.words[1] in _TALKS_OF_GIT
        )
        if talks and not any(_runs_text(later, simples[: place + 1]) for later in simples[place:]):
            texts = []
        texts += [view for text in (*simple.words, simple.stdin) for view in _decoded(text)]
        texts += [
            value for name, value in simple.variables.items() if re.fullmatch(r"PROMPT_COMMAND|PS\d|BASH_ENV", name)
        ]
        reasons = (
            DESTROYS if _destroys(simple) else "",
            *_fitting(BLOCKS, simple),
            *(_shape(text, simple.folder) for text in texts),
        )
        if reason := next(filter(None, reasons), ""):
            return reason
    return ""


def _destroys(simple: Simple) -> bool:
    """Whether it deletes, empties or changes the owner of a vital folder as a whole."""
    words, program, recursive = simple.operands, simple.program, simple.has("rR", "--recursive", "--no-preserve-root")
    match program:
        case "chmod" | "chown" | "chgrp" | "setfacl":
            words = words[1:] if recursive else ()
        case "find":
            deletes = {"-delete", "rm", "shred", "unlink", "/bin/rm"} & set(simple.words)
            words = words[:1] if deletes and not any(map(_NARROWING.match, simple.words)) else ()
        case "rsync":
            words = words[-1:] if " --del" in " ".join(simple.words) else ()
        case "mv":
            words = words[:-1]
        case "rm" | "srm" | "trash":
            words = words if recursive else ()
        case _ if not is_known(program):  # Whatever it is, it is told to go through all and to ask nobody.
            words = words if recursive and simple.has("f", "--force") else ()
        case _:
            words = words if program in _DELETERS else ()
    return any(_is_vital(simple.folder, word) for word in words if word and is_known(word))


def _is_vital(folder: str, word: str) -> bool:
    """Whether a path is a vital folder as a whole: `/etc`, `/etc/`, `/etc/*` and `/e*` are."""
    stripped = re.sub(rf"(^|/+)(\.?[*?]+|\.\[\^\.\]\*|\.|{NAME})?$", "", word)
    target = stripped if stripped[:1] == "~" else os.path.join(folder, stripped)  # noqa: PTH118 - `~` and `//` are kept
    target = "/" if not stripped and word[0] == "/" else re.sub("^//", "/", os.path.normpath(target))
    if re.fullmatch(r"~\w*|/home/[^/]+|/Users/[^/]+", target):
        return True
    return any(target == vital or (re.search(r"[*?\[]", target) and fnmatchcase(vital, target)) for vital in VITAL)


def _runs_text(simple: Simple, before: list[Simple]) -> bool:
    """Whether it runs text as a program that another part of the command may have made."""
    if simple.program in ("eval", "parallel", "xargs", "at", "batch", "crontab") or not is_known(simple.program):
        return True
    runs = simple.program in _INTERPRETERS | {"source", "."}
    script = next(iter(simple.operands), "") if runs else " ".join(simple.words[:1])
    if runs and (script in ("", "-") or script.startswith("/dev/") or PIPE in script):
        return not any(re.fullmatch(r"-\w*[cem]", word) for word in simple.words)
    made = {Path(word).name for each in before if each is not simple for word in (*each.writes, *each.operands)}
    return bool(script) and Path(script).name in made


def _decoded(text: str) -> Iterator[str]:
    """What the encoded parts of a text say: base64, hexadecimal, escapes, backwards, rot13."""
    for token in re.findall(r"[A-Za-z0-9+/]{8,}={0,2}", text):
        with suppress(ValueError):
            yield base64.b64decode(token + "=" * (-len(token) % 4)).decode()
        if re.fullmatch("(?:[0-9a-fA-F]{2})+", token):
            yield bytes.fromhex(token).decode("latin-1")
    yield from (text[::-1], codecs.encode(text, "rot13"), *([unescaped(text)] if "\\" in text else []))


def _shape(text: str, folder: str) -> str:
    """Why a text would be blocked if its words were run as they stand, whatever is around them; empty if it is not."""
    for part in re.split(r"[;|&\n]", re.sub(r"print\((['\"])[^'\"]*\1\)", "", text)):
        words = [word for word in re.split(r"[\s'\"`,()\[\]{}]+", part) if word]
        for place, word in enumerate(words[:-1]):
            name = word.rpartition("/")[2] if word.rpartition("/")[2] in _STRONG else word.rpartition(".")[2]
            if name in _STRONG or "mkfs" in word:
                simple = Simple(words=(name if name in _STRONG else word, *words[place + 1 :]), folder=folder)
                if _destroys(simple) or (reason := next(_fitting(BLOCKS, simple), "")):
                    return DESTROYS if _destroys(simple) else reason
    return ""


def _reasons(simple: Simple, where: Where) -> Iterator[str]:
    inside = replace(where, folder=simple.folder)
    reads = simple.words[:1] == (simple.program,) and simple.program in READERS and not simple.variables
    yield from _fitting(HELD, simple)
    if is_below(os.path.realpath(simple.folder), where.closed) and not reads:
        yield "it runs in this program's own source"
    deleted = _deleted(simple)
    if any(sign in "".join(deleted) for sign in (VARIABLE, COMPUTED, NAME)):
        yield "it deletes what its words do not name"
    yield from (
        f"no checkpoint holds what it deletes or overwrites ({path})" for path in deleted if inside.is_lost(path)
    )
    if where.walled:
        return
    fed = simple.program in _INTERPRETERS - SHELLS and not is_known(simple.stdin) and not simple.words[1:]
    yield from (reason for reason in BARE if reason in _fitting(BARE, simple) or (fed and "prints" in reason))
    outside = [re.sub("[\ue000-\ue005]+", "...", path) for path in written(simple) if inside.is_outside(path)]
    yield from (f"it writes outside the workspace ({path})" for path in outside)
    if where.bare and (not reads or not all(map(DEVICES.fullmatch, simple.writes))):
        yield UNHELD


_LAST = named("cp mv install rsync ln scp link")
_ALL = named("tee touch mkdir truncate rm rmdir unlink shred fallocate mkfifo nano vi vim ed ex emacs")
_OUTPUT = named("curl wget sort gcc cc g++ clang ld gpg pandoc unzip tar")


def written(simple: Simple) -> list[str]:
    """Local paths that this command writes to, as far as its words tell."""
    program, operands = simple.program, list(simple.operands)
    found = [*simple.writes, *(word[3:] for word in simple.words if program == "dd" and word.startswith("of="))]
    if program in _LAST:
        found += [simple.value("-t", "--target-directory")] if simple.has("t") else operands[-1:]
        found += operands[:-1] if program == "mv" else ()
    elif program in _ALL:
        found += (
            operands if program == "rm" else [word for word in operands if word != simple.value("-s", "-m", "-d", "-t")]
        )
    elif program in ("chmod", "chown", "chgrp", "setfacl") or (program in ("sed", "perl") and simple.has("i")):
        found += operands[1:]
    elif program in _OUTPUT:
        found += [simple.value("-o", "--output", "-O", "-P", "--output-document"), simple.value("-C", "-d")]
    elif operands[:1] == ["clone"]:
        found += operands[2:3]
    return [path for path in found if path and not re.match(r"[\w.-]+@?[\w.-]*:(?!/dev)", path)]


def _deleted(simple: Simple) -> list[str]:
    """Paths whose present content this command deletes or overwrites; globs as the files that they match."""
    program, operands = simple.program, simple.operands
    paths = (
        [*operands]
        if program in ("rm", "shred", "unlink", "truncate")
        else [path for path in simple.writes if is_known(path)]
    )
    paths += operands[-1:] if program in ("cp", "mv") and len(operands) == 2 else ()
    globs = {path for path in paths if re.search(r"[*?\[]", path) and is_known(path) and path[0] != "/"}
    matched = [str(each) for glob in globs for each in list(Path(simple.folder).glob(glob))[:1000]]
    return [*(path for path in paths if path not in globs), *matched]


# What may have a shell behind it that the command does not name.
_ELSEWHERE = SHELLS | named(
    "ssh mosh telnet docker podman kubectl tmux screen script expect conda busybox sudo su doas"
)
PARTS = "it types into a shell or interpreter what cannot be judged by itself"
KEYS = re.compile(r"[\x03\x04\x1a\x1c]*")  # they interrupt, end the input, suspend, quit


def judge_input(running: str, data: str, where: Where) -> Verdict:
    """The verdict on writing `data` to the running command. Where a shell or interpreter reads it, whole lines are
    judged as a command; without a wall, parts of lines and programs for an interpreter are asked about."""
    try:
        programs = read(running, where.folder)
    except (Unreadable, RecursionError):
        programs = [Simple(words=("sh",))]
    shell = any(each.program in _ELSEWHERE or not is_known(each.program) for each in programs)
    talks = any(each.program in _INTERPRETERS and not each.operands for each in programs)
    if KEYS.fullmatch(data) or not (shell or talks):
        return Verdict()
    verdict = judge(data, where)
    whole = shell and data.endswith("\n") and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]|\\\n?\Z", data[:-1])
    return verdict if verdict.blocked or whole or where.walled else replace(verdict, asks=(*verdict.asks, PARTS))
