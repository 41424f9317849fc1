"""Tests for commands that gain privileges, load or start other code, or change the system."""

from __future__ import annotations

import re
from itertools import pairwise

from hermes_agent.tools.syntax.simple import NAME, PIPE, VARIABLE, Simple, is_known
from hermes_agent.tools.syntax.wrapped import SHELLS


def opens_to_all(simple: Simple) -> bool:
    """Makes files world-writable or setuid."""
    if simple.program == "setfacl":
        return any(re.search(r"(^|,)o(ther)?:[^,]*w", word) for word in simple.operands)
    if simple.program == "umask":
        return simple.operands[:1] in (("0",), ("000",), ("0000",), ("0002",)[1:])
    mode = simple.operands[0] if simple.operands else next(iter(simple.arguments), "")
    wide = r"[0-7]?[0-7][0-7][2367]|([ugoa,+=-]|[rwxXst])*(^|,)[ug]*[ao][ugoa]*[+=][rxXst]*w.*|[+=][rxX]*w.*"
    set_id = r"[2467][0-7]{3}|.*[ugo+=].*s.*"
    if simple.program == "install":
        mode = simple.value("-m", "--mode")
    judged = simple.program == "chmod" or (simple.program == "install" and bool(mode))
    return judged and bool(re.fullmatch(wide, mode) or re.fullmatch(set_id, mode))


def is_computed(simple: Simple) -> bool:
    """The program's name is computed, so it is unknown what runs."""
    if not simple.words:
        return False
    name = simple.words[0]
    spaced = " " in name.strip() and "/" not in name and not simple.prefixes
    globbed = bool(re.search(r"[*?\[]", name)) and name not in ("[", "[[")
    return not is_known(name) or NAME in name or globbed or spaced or "," in name


def acts_as_another(simple: Simple) -> bool:
    """Runs as another user."""
    others = {"sudo", "doas", "chroot", "nsenter", "systemd-run", "unshare", "capsh"}
    asks = simple.program in others and not {"-V", "--version", "--help", "-h", "-l", "-v", "-k"} & set(
        simple.arguments[:1]
    )
    return (
        asks
        or bool(others & set(simple.prefixes))
        or simple.program in ("su", "pkexec", "runuser", "gosu", "runas", "login")
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOADERS = (
    r"LD_(PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|PERL5(OPT|LIB|DB)"
    r"|RUBYOPT|PYTHONSTARTUP|GIT_SSH(_COMMAND)?|GIT_(PAGER|EDITOR|EXTERNAL_DIFF|PROXY_COMMAND)"
    r"|SHELLOPTS|PS4|LESSOPEN|(MAN)?PAGER|BROWSER|VISUAL|EDITOR"
)
_CALM = frozenset(
    ("", "cat", "less", "more", "true", ":", "vim", "vi", "nano", "code --wait", "emacs", "less -R", "-R", "/bin/cat")
)


def loads_other_code(simple: Simple) -> bool:
    """Sets a variable that makes programs load or run other code."""
    for name, value in simple.variables.items():
        if re.fullmatch(_LOADERS, name) and value not in _CALM and name != "LD_LIBRARY_PATH":
            return True
        if name in ("NODE_OPTIONS", "PYTHONSTARTUP", "JAVA_TOOL_OPTIONS") and re.search(
            r"--?(require|r|import|javaagent)\b", value
        ):
            return True
    return _configures_git(simple)


_OF_GIT = (
    r"(?i)core\.(pager|editor|sshcommand|fsmonitor|hookspath|gitproxy|askpass)|alias\..+|include(if)?\..*path"
    r"|(credential|filter|diff|merge|difftool|mergetool|gpg|sequence|pager|interactive)\..*"
)


def _configures_git(simple: Simple) -> bool:
    """Whether it configures a command that git runs later, other than an alias for git itself."""
    words = simple.operands
    if simple.program != "git" or words[:1] != ("config",):
        return False
    for key, value in pairwise(words):
        if re.fullmatch(_OF_GIT, key) and value not in _CALM:
            return value.startswith("!") or not key.lower().startswith("alias.")
    return False


_SHELL_INSIDE = (
    r"(^|[=!:;|,(\s'\"])(/usr)?(/bin/)?(sh|bash|zsh|dash|ksh)([\s;'\"),|#]|$)|exec=|os\.execute|os\.system|popen|system\("
    r"|(^|[\s:'\"(])![a-z/]|\bexec\s+['\"]?/|ProxyCommand|--unzip-command|--use-compress-program|--to-command|--rsh"
)
# Programs for which the name of a shell is only a word.
_TALKERS = _words(
    "echo printf grep egrep fgrep rg ag ack ls cat which type whereis whatis command file stat head tail less "
    "wc sort uniq cut tr git gh test [ [[ expr dirname basename readlink realpath shellcheck shfmt mkdir touch "
    "cp mv rm ln chmod tee export local diff cmp apt apt-cache dpkg pip pip3 npm yarn pnpm brew pgrep ps curl "
    "wget jq yq cd pushd true false exit return read alias unalias docker podman kubectl set shopt hash trap "
    "pytest go cargo cmake ninja tox uv poetry python python3 node ruby perl php lua awk gawk mawk sed code "
    "bat fd fdfind find time date du df tree md5sum sha256sum xxd sudo su ssh chsh env eval source . pidof top "
    "htop kill tldr apropos info help hermes bash sh zsh dash ksh fish declare typeset readonly let unset "
    "history comm"
)
_SCRIPTABLE = {
    "gdb": r"^(shell|!|python|pi|source|call|compile)\b|^-ex=(shell|!)",
    "zip": r"^-\w*TT|^--unzip-command|(^|/)(ba|z|da)?sh\b",
    "man": r"-[HP].*|--(pager|html)=.*",
    "make": r"--eval.*|.?SHELL=.*",
    "nmap": rf"--script=?.*([/{PIPE}]|\.nse).*|--interactive",
    "git": (
        r"core\.(pager|editor|sshCommand|fsmonitor|hooksPath)=|alias\.\w+=!|--(upload|receive)-pack|ext::|--exec-path="
        r"|--open-files-in-pager|^-O."
    ),
}
# Programs whose input may leave them for a shell.
_ESCAPABLE = _words(
    "ed ex vi vim ftp sftp less more mail telnet gdb psql mysql sqlite3 irb python bc dc nslookup tclsh"
)


def starts_a_shell(simple: Simple) -> bool:
    """Makes a program run a shell, as listed by GTFOBins (https://gtfobins.github.io)."""
    if simple.program in SHELLS:
        waits = not simple.operands and simple.stdin is None and not simple.fed_by
        return bool(simple.prefixes) and waits
    if simple.program in _ESCAPABLE and re.search(r"(^|\n)[ :]*!", simple.stdin or ""):
        return True
    return any(_leaves(simple.program, word) for word in simple.arguments) and VARIABLE not in simple.program


def _leaves(program: str, word: str) -> bool:
    """Whether this argument makes the program start another one."""
    if program in _SCRIPTABLE:
        return bool(re.search(_SCRIPTABLE[program], word))
    if program in ("tar", "scp", "rsync", "zip") and not (word.startswith("-") or " " in word):
        return False
    return program not in _TALKERS and bool(re.search(_SHELL_INSIDE, word))


EVERYTHING: frozenset[str] = frozenset()
# Programs that change the system or what others use: the subcommands that do, or none named for all of them.
SYSTEM_CHANGES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("systemctl", "service", "launchctl", "rc-service"),
        _words(
            "stop disable mask restart kill unload bootout"
            " start enable unmask edit set-default load bootstrap daemon-reload"
        ),
    ),
    **dict.fromkeys(_words("ufw umount swapoff ifdown modprobe insmod rmmod kexec"), EVERYTHING),
    **dict.fromkeys(
        _words("useradd userdel usermod groupadd groupdel adduser deluser passwd chpasswd visudo chsh"), EVERYTHING
    ),
    **dict.fromkeys(
        _words("batch setcap setenforce update-rc.d chkconfig dpkg-reconfigure grub-install efibootmgr"), EVERYTHING
    ),
    **dict.fromkeys(_words("dropdb dropuser debugfs ip6tables-restore iptables-restore authconfig"), EVERYTHING),
    **dict.fromkeys(
        ("apt", "apt-get", "aptitude"), _words("install remove purge autoremove upgrade dist-upgrade full-upgrade")
    ),
    **dict.fromkeys(("yum", "dnf", "zypper", "apk", "pkg"), _words("install remove erase upgrade update add del")),
    **dict.fromkeys(("brew", "snap", "flatpak", "port"), _words("uninstall remove purge autoremove")),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "cargo", "gem", "poetry", "twine", "flit", "hatch", "uv", "vsce"),
        _words("publish unpublish upload yank deprecate owner adduser push"),
    ),
    "terraform": _words("apply destroy import taint state force-unlock"),
    "tofu": _words("apply destroy import taint state force-unlock"),
    "pulumi": _words("up destroy"),
    "kubectl": _words("delete drain cordon taint exec replace patch scale apply edit cp"),
    "helm": _words("uninstall delete install upgrade rollback"),
    "vercel": _words("remove rm"),
    "netlify": _words("sites:delete"),
    "heroku": _words("apps:destroy pg:reset ps:scale"),
    "vagrant": _words("destroy"),
    "conda": _words("remove uninstall"),
    "mysqladmin": _words("drop shutdown"),
    "rabbitmqctl": _words("reset force_reset delete_queue delete_vhost"),
    "hdfs": _words("-rm -format"),
    "tc": _words("add del change replace"),
    "zfs": _words("destroy rollback"),
    "btrfs": _words("delete"),
    "virsh": _words("destroy undefine"),
    "nmcli": _words("delete down off modify"),
    "loginctl": _words("terminate-user terminate-session kill-user"),
    "reg": _words("delete add"),
    "vssadmin": _words("delete"),
    "defaults": _words("delete write"),
    "csrutil": _words("disable"),
    "dconf": _words("write reset load update"),
    "gsettings": _words("set reset reset-recursively"),
    "busctl": _words("call set-property emit"),
}
_CLOUDS = frozenset(("aws", "gcloud", "az", "gsutil", "doctl", "linode-cli", "hcloud", "flyctl", "fly", "oci"))
_CLOUD_CHANGES = r"(delete|terminate|remove|destroy|purge|rb|rm|stop|detach|deregister|revoke|put|attach|create)(-.*)?"
_CONTAINER_DANGER = (
    r"--privileged|--cap-add(=.*)?|--(pid|net|network|ipc|userns|uts)=host|--device(=.*)?|--security-opt=.*unconfined"
)


def changes_the_system(simple: Simple) -> bool:
    """Changes services, users, packages, firewalls, clusters, clouds or registries."""
    program = simple.program
    if {"--help", "--version"} & set(simple.arguments):
        return False
    if program in _CLOUDS:
        return any(re.fullmatch(_CLOUD_CHANGES, word) for word in simple.operands[:4]) and "list" not in simple.operands
    words = SYSTEM_CHANGES.get(program)
    return _sets(simple) if words is None else not words or bool(words & set(simple.operands[:2]))


def _sets(simple: Simple) -> bool:
    """Programs that only show something unless they get a value to set."""
    operands = set(simple.operands)
    match simple.program:
        case "crontab":
            return simple.has("re") or bool(operands)
        case "iptables" | "ip6tables" | "nft" | "ebtables":
            return not (simple.has("LS", "--list") or set(simple.operands[:1]) == {"list"})
        case "sysctl":
            return simple.has("wp") or any("=" in word for word in operands)
        case "ip" | "route":
            return bool(operands & {"del", "add", "set", "flush", "delete", "replace", "down"})
        case "ifconfig" | "mount" | "at" | "swapon" | "update-alternatives" | "losetup":
            return len(simple.operands) > (simple.program == "ifconfig")
        case _:
            return simple.program in _CLOCKS and (
                simple.has("s", "--set") or any(word.startswith("set-") for word in operands)
            )


_CLOCKS = ("date", "hwclock", "hostnamectl", "timedatectl")


def changes_containers(simple: Simple) -> bool:
    """Removes containers, volumes or images, or gives a container access to the machine."""
    if simple.program not in ("docker", "podman", "docker-compose", "nerdctl", "lxc"):
        return False
    first = simple.operands[:2]
    removed = bool({"prune", "rm", "remove", "delete", "reset"} & set(first[1:2]))
    removed = removed or first[:1] in (("rm",), ("rmi",), ("kill",), ("push",), ("login",), ("swarm",))
    return removed or _opens(simple) or ("down" in simple.operands and simple.has("v", "--volumes", "--rmi"))


def _opens(simple: Simple) -> bool:
    """Whether a container gets the machine's folders, devices, network or privileges."""
    if any(re.fullmatch(_CONTAINER_DANGER, word) for word in simple.arguments):
        return True
    mounted = [simple.value("-v", "--volume"), re.sub(r".*(src|source)=([^,]*).*", r"\2", simple.value("--mount"))]
    spaces = any(a in ("--pid", "--net", "--network", "--ipc") and b == "host" for a, b in pairwise(simple.arguments))
    return spaces or any(re.match(_MACHINE, folder) for folder in mounted)


_MACHINE = r"(/|/etc|/root|/home|/var|(/var)?/run/docker\.sock|/usr|/dev|/proc|/sys|~)(:|$)"
