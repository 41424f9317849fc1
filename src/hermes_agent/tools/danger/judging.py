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

from hermes_agent.tools.danger.shell import SHELLS, Simple, Unreadable, is_known, read, unescaped
from hermes_agent.tools.danger.verdict import COMPUTED, DEVICES, PIPE, UNKNOWN, Verdict, Where, is_below, named

VITAL = named(
    "/ ~ /bin /boot /dev /etc /home /lib /lib32 /lib64 /mnt /opt /private /proc /root /run /sbin /srv /sys /usr /var"
    " /usr/lib /usr/local /usr/sbin /usr/share /usr/bin /var/lib /Applications /Library /System /Users"
)
_DEVICE = (
    r"(/dev/(?!(fd|shm|pts|tcp|udp|null|zero|full|std\w+|loop-control|tty\w*|u?random|net)\b)\w|/dev/k?mem"
    r"|/proc/(sysrq-trigger|kcore|mem)|/sys/power/)"
)
_OFF = "shutdown|reboot|halt|poweroff"
_ASKS_ONLY = r"(-l|--list|-V|--version|--help|-h|-v|-k|print|-p|--dry-run)( |$)"
DESTROYS, FORK_BOMB = "it would destroy the system or a home folder", "it is a fork bomb"
# Rules: a reason, and what a program with its words looks like that it is for. `> PATH` is a redirection.
BLOCKS = {
    "it would erase a disk": rf"(mkfs\S*|mkswap|wipefs|[cs]?fdisk|[sc]?gdisk|blkdiscard|mke2fs|mkntfs|mkdosfs|newfs\S*"
    rf"|(lv|vg|pv)remove) (?!(.* )?{_ASKS_ONLY})|badblocks .*-\w*[wn]|hdparm .*--(security|trim|write|make-bad)"
    r"|nvme (format|sanitize|write-zeroes)|zpool (destroy|labelclear)|cryptsetup .*(luksFormat|[eE]rase|reencrypt)"
    r"|diskutil (?i:erase|partitionDisk|zeroDisk|secureErase)|dmsetup (wipe_table|remove_all)|format [A-Za-z]:"
    r"|parted .*(mklabel|mkpart|rm|mktable)",
    "it would write over a device": rf".*(> |of=){_DEVICE}|(tee|shred|truncate|scrub) (.* )?{_DEVICE}"
    rf"|(cp|mv|pv|install) (.* )?{_DEVICE}\S*$",
    "it would turn the machine off": rf"({_OFF})(?!.* (--help|-c|--version))( |$)|(tel)?init (.* )?[06]$"
    rf"|systemctl (.* )?({_OFF}|kexec|suspend|hibernate|emergency|rescue)",
}
_HERE = r"(\w+://)?([^@/ ]*@)?(localhost|127(\.\d+){3}|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal)([:/? ]|$)"
LEAVES = {  # what is of no use inside a wall
    "it acts as another user": r"(sudo|doas|su|pkexec|runuser|gosu|runas|login|chroot|nsenter|systemd-run|capsh|newgrp"
    rf"|sg|machinectl)(?! {_ASKS_ONLY})( |$)",
    "it publishes, or changes what others use": r"(git (-\S+ (\S*[/=.]\S* )?)*(push|send-email)|hg push|(docker"
    r"|podman) (push|login)|(npm|pnpm|yarn|cargo|gem|poetry|twine|flit|hatch|uv|vsce) (run )?((un)?publish|upload"
    r"|yank|owner|deprecate)|(gh|glab) \w+ (?!list|view|status|diff|checks|watch|clone|checkout)\w+|(kubectl|helm"
    r"|terraform|tofu|pulumi) (.* )?(delete|drain|exec|replace|patch|scale|apply|edit|cp|(un)?install|upgrade|rollback"
    r"|destroy|import|up)|(vercel|netlify|heroku|fly|flyctl|aws|gcloud|az|gsutil|doctl|hcloud) (.*[ :-])?(deploy|--prod"
    rf"|destroy|reset|scale|cp|mv|sync|rb|rm|put|create|delete|remove|stop|terminate))(?!.* {_ASKS_ONLY})( |$|-)",
    "it acts on another machine": r".*/dev/(tcp|udp)/|ssh (?!-V)|(scp|rsync) .*([\w.-]:\S*|\w+://\S*)$|(sftp|mosh|pssh"
    r"|ansible\S*|mailx?|mutt|sendmail|msmtp|swaks|gist|ngrok|cloudflared|chisel|localtunnel|frpc|bore|tmate|nc|ncat"
    rf"|netcat|cryptcat|socat|telnet|l?ftp|tftp|smbclient|rclone) (?!(.* )?({_HERE}|--version|--help))",
}
HELD = {  # what neither a wall nor a checkpoint holds
    "it sends something to another machine": rf"(curl|wget|https?|xh|httpie) (?!(.* )?{_HERE})((.* )?(-\w*[dFT]($| |\S)"
    r"|--(data|form|json|upload-file|post-|body-)|(-X ?|--request[ =]|--method=|)(POST|PUT|PATCH|DELETE) )"
    rf"|.*{COMPUTED})|(dig|nslookup|host|ping|whois) .*[{UNKNOWN}]",
    "it discards versions that no checkpoint holds": r"git (-\S+ )*(branch .*(-D|--delete)|stash (drop|clear)"
    r"|gc .*--prune|reflog (expire|delete)|update-ref .*-d|filter-(branch|repo)|tag .*(-d|--delete)|clean .*-\w*[xX]"
    r"|worktree remove .*-f)",
    "it deletes what its words do not name": rf"(rm|shred|unlink) .*[{UNKNOWN}]",
}
BARE = {  # what only a wall would hold
    "it runs what another program prints": rf"[^ ]*[{UNKNOWN}]|(source|\.|eval|\S*sh|python\S*|perl|ruby"
    rf"|node|php) ([^>]* )?\S*[{COMPUTED}{PIPE}]",
    "it touches credentials": r"(?!echo|printf|ssh-keygen|chmod|ls |mkdir|stat|man|git )(.*[/=@:'\"( ~])?((\.ssh"
    r"|\.gnupg|\.aws|\.azure|\.kube|\.netrc|\.git-credentials|\.pgpass|\.password-store|\.npmrc|\.pypirc|\.docker/config\.json"
    r"|\.config/(gcloud|gh|op)|\.\w+_history)(/(?!config\b|known_hosts|\S*\.pub\b)| |$)|/etc/(g?shadow|sudoers)"
    r"|/proc/\S+/environ|id_(rsa|ecdsa|ed25519)( |$)|\.hermes/\.env|/auth\.json( |$))",
}
READERS = named("cat echo false grep head ls pwd stat tail test true wc cd which du df basename dirname realpath")
"""Programs that only read, if an earlier command gave the name no other meaning. Redirections are judged apart."""
_INTERPRETERS = SHELLS | named("python python2 python3 perl ruby node php lua osascript Rscript tclsh")
_ELSEWHERE = SHELLS | named("ssh mosh telnet docker podman kubectl tmux screen script expect busybox sudo su doas")
_TALKERS = named("echo printf grep egrep fgrep rg ag ack cat tee man which type gh jq less head tail ls")
_TALKS_OF_GIT = named("commit log grep tag notes show blame diff stash branch checkout switch add merge")
_DELETERS = named("rm srm rimraf trash rmtree rmSync rmdirSync rm_rf rm_r remove_dir_all removeSync")
_STRONG = _DELETERS | named("dd chmod chown chgrp find wipefs mkswap fdisk sfdisk sgdisk blkdiscard mke2fs shred")
_NARROWING = re.compile(r"-(i?name|i?path|[acm]time|[acm]min|size|i?regex|user|newer|empty)")
_FORKS = re.compile(r"(?<=[|;&{(])([\w:.]++)[|&]++\1")
_ENDLESS = re.compile(r"while\W*+(1|[tT]rue)\W")


def judge(command: str, where: Where) -> Verdict:
    try:
        simples = read(command, where.folder)
    except (Unreadable, RecursionError) as error:
        asks = () if where.walled else (f"it cannot be read as a command ({error})",)
        return Verdict(blocked=_blocked([], command) or _shape(command, where.folder), asks=asks)
    reason = _blocked(simples, command)
    return Verdict(blocked=reason) if reason else judged(simples, where)


def judged(simples: list[Simple], where: Where) -> Verdict:
    leaves = [reason for simple in simples for reason in _fitting(LEAVES, simple)]
    asks = (*leaves, *(reason for simple in simples for reason in _reasons(simple, where)))
    return Verdict(asks=tuple(dict.fromkeys(asks)), leaves=bool(leaves))


def _fitting(rules: dict[str, str], simple: Simple) -> Iterator[str]:
    line = " ".join((simple.program, *simple.words[1:], *(f"> {path}" for path in simple.writes)))
    return (reason for reason, pattern in rules.items() if re.match(pattern, line, re.DOTALL))


def _blocked(simples: list[Simple], raw: str) -> str:
    """Why the command never runs: one of its programs destroys, or text that is run does; empty if none."""
    flat = "".join(raw.split())
    forks = {found[1]: found.start() for found in _FORKS.finditer(flat)}
    begun = (re.search(rf"{re.escape(name)}(\(\))?[{{(]", flat[:at]) for name, at in forks.items())
    endless = (part.partition(" ")[2] for part in _ENDLESS.sub(" ", flat).split(";"))
    if any(begun) or "forkwhilefork" in flat or any("fork(" in each for each in endless):
        return FORK_BOMB
    for simple in simples:
        texts = [*simple.words, " ".join(simple.words), simple.stdin]
        talks = simple.program in _TALKERS or (simple.program == "git" and _TALKS_OF_GIT & set(simple.words[1:2]))
        if talks and not any(_runs_text(each) for each in simples if each.words):
            texts = []
        texts += [view for text in (*simple.words, simple.stdin) for view in _decoded(text)]
        loaded = re.compile(r"PROMPT_COMMAND|PS\d|BASH_ENV")
        texts += [text for name, text in simple.variables.items() if loaded.fullmatch(name)]
        reasons = (*_destruction(simple), *(_shape(text, simple.folder) for text in texts))
        if reason := next(filter(None, reasons), ""):
            return reason
    return ""


def _destroys(simple: Simple) -> bool:
    words, program, recursive = simple.operands, simple.program, simple.has("rR", "--recursive", "--no-preserve-root")
    if program in ("chmod", "chown", "chgrp", "setfacl"):
        words = words[1:] * recursive
    elif program == "find":
        deletes = {"-delete", "rm", "shred", "unlink", "/bin/rm"} & set(simple.words)
        words = words[:1] * (bool(deletes) and not any(map(_NARROWING.match, simple.words)))
    elif program in ("rsync", "mv"):
        words = words[:-1] if program == "mv" else words[-1:] * (" --del" in " ".join(simple.words))
    elif is_known(program) and not re.search(r"[*?\[]", program):
        words = words * (program in _DELETERS and (recursive or program not in ("rm", "srm", "trash")))
    else:  # Whatever it is, it is told to go through all and to ask nobody.
        words = words * (recursive and simple.has("f", "--force"))
    return any(_is_vital(simple.folder, word) for word in words if word and is_known(word))


def _is_vital(folder: str, word: str) -> bool:
    stripped = re.sub(rf"(^|/+)(\.?[*?]+|\.\[\^\.\]\*|\.|[{UNKNOWN}])?$", "", word)
    target = stripped if stripped[:1] == "~" else os.path.join(folder, stripped)  # noqa: PTH118 - `~` and `//` are kept
    target = "/" if not stripped and word[0] == "/" else re.sub("^//", "/", os.path.normpath(target))
    if re.fullmatch(r"~\w*|/home/[^/]+|/Users/[^/]+", target):
        return True
    return any(target == vital or (re.search(r"[*?\[]", target) and fnmatchcase(vital, target)) for vital in VITAL)


def _runs_text(simple: Simple) -> bool:
    if PIPE in "".join(simple.variables.values()) or (simple.program == "printf" and simple.has("v")):
        return True
    runs = simple.program in _INTERPRETERS | named("eval source . parallel xargs at batch crontab make")
    return (runs and not simple.has("cm")) or "/" in simple.words[0] or not is_known(simple.program)


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
        tails = [(re.sub(r".*[/.!=]|^-S", "", word), place + 1) for place, word in enumerate(words[:-1])]
        simples = [Simple(words=(name, *words[at:]), folder=folder) for name, at in tails if name in _STRONG | {"mkfs"}]
        if reason := next((reason for simple in simples for reason in _destruction(simple)), ""):
            return reason
    return ""


def _destruction(simple: Simple) -> Iterator[str]:
    yield from [DESTROYS] if _destroys(simple) else []
    yield from _fitting(BLOCKS, simple)


def _reasons(simple: Simple, where: Where) -> Iterator[str]:
    inside = replace(where, folder=simple.folder)
    reads = _reads(simple)
    yield from _fitting(HELD, simple)
    if is_below(os.path.realpath(simple.folder), where.closed) and not reads:
        yield "it runs in this program's own source"
    targets = written(simple)
    erased = targets if simple.program in _ERASERS else simple.writes
    lost = filter(inside.is_lost, erased)
    yield from (f"no checkpoint holds what it deletes or overwrites ({path})" for path in lost)
    if where.walled:
        return
    fed = simple.program in _INTERPRETERS - SHELLS and not is_known(simple.stdin) and not simple.words[1:]
    yield from _fitting(BARE, replace(simple, words=(*simple.words, COMPUTED)) if fed else simple)
    outside = [re.sub(f"[{UNKNOWN}]+", "...", path) for path in targets if inside.is_outside(path)]
    yield from (f"it writes outside the workspace ({path})" for path in outside)
    if where.bare and not (reads and all(map(DEVICES.fullmatch, simple.writes))):
        yield "no wall can be had here to hold what it does"


def _reads(simple: Simple) -> bool:
    return simple.words[:1] == (simple.program,) and simple.program in READERS and not simple.variables


def only_reads(command: str, folder: str) -> bool:
    """Whether all that a command runs in a folder is known to change nothing."""
    try:
        return all(_reads(simple) and not simple.writes for simple in read(command, folder))
    except (Unreadable, RecursionError):
        return False


_ERASERS = named("rm shred unlink truncate cp mv")
_WRITERS = _ERASERS | named("tee touch mkdir rmdir fallocate mkfifo nano vi vim ed emacs install rsync ln scp link dd")


def written(simple: Simple) -> list[str]:
    """Local paths that this command writes to or deletes, as far as its words tell."""
    program, operands = simple.program, [*simple.operands]
    found = [*simple.writes, simple.value("-o", "--output", "-O") if program in ("curl", "wget", "sort", "cc") else ""]
    if program in ("cp", "install", "rsync", "ln", "scp", "link"):
        found += operands[-1:] if len(operands) > 1 else []
    elif program in _WRITERS:
        found += [word.removeprefix("of=") for word in operands if program != "dd" or word.startswith("of=")]
    elif program in ("chmod", "chown", "chgrp", "setfacl") or (program in ("sed", "perl") and simple.has("i")):
        found += operands[1:]
    found += operands[2:3] if operands[:1] == ["clone"] else []
    return [path for path in found if path and not re.match(r"[\w.-]+@?[\w.-]*:(?!/dev)", path)]


KEYS = re.compile(r"[\x03\x04\x1a\x1c]*")  # they interrupt, end the input, suspend, quit
PARTS = "it types into a shell or interpreter what cannot be judged by itself"


def judge_input(running: str, data: str, where: Where) -> Verdict:
    """The verdict on typing `data` into the running command: a command, where a shell or interpreter reads it."""
    try:
        programs = read(running, where.folder)
    except (Unreadable, RecursionError):
        programs = [Simple(words=("sh",))]
    shell = any(each.program in _ELSEWHERE or not is_known(each.program) for each in programs)
    talks = shell or any(each.program in _INTERPRETERS and not each.operands for each in programs)
    if KEYS.fullmatch(data) or not talks:
        return Verdict()
    verdict = judge(data, where)
    whole = shell and data.endswith("\n") and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]|\\\n?\Z", data[:-1])
    return verdict if verdict.blocked or whole or where.walled else replace(verdict, asks=(*verdict.asks, PARTS))
