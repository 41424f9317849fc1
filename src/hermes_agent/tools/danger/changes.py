"""Commands that change the system, clusters, clouds, registries and containers."""

from __future__ import annotations

import re
from itertools import pairwise

from hermes_agent.tools.syntax.simple import Simple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
_CLOUD_CHANGES = re.compile(
    r"(delete|terminate|remove|destroy|purge|rb|rm|stop|detach|deregister|revoke|put|attach|create)(-.*)?"
)
_CONTAINER_DANGER = re.compile(
    r"--privileged|--cap-add(=.*)?|--(pid|net|network|ipc|userns|uts)=host|--device(=.*)?|--security-opt=.*unconfined"
)


def changes_the_system(simple: Simple) -> bool:
    """Changes services, users, packages, firewalls, clusters, clouds or registries."""
    program = simple.program
    if {"--help", "--version"} & set(simple.arguments):
        return False
    if program in _CLOUDS:
        return any(_CLOUD_CHANGES.fullmatch(word) for word in simple.operands[:4]) and "list" not in simple.operands
    words = SYSTEM_CHANGES.get(program)
    return _sets(simple) if words is None else not words or bool(words & set(simple.operands[:2]))


def _sets(simple: Simple) -> bool:
    """Programs that show something, and change it where they are told a value."""
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
            return simple.program in _CLOCKS and (simple.has("s", "--set") or any(map(_is_set, operands)))


_CLOCKS = ("date", "hwclock", "hostnamectl", "timedatectl")


def _is_set(word: str) -> bool:
    return word.startswith("set-")


def changes_containers(simple: Simple) -> bool:
    """Removes containers, volumes and images, or opens the machine to one."""
    if simple.program not in ("docker", "podman", "docker-compose", "nerdctl", "lxc"):
        return False
    first = simple.operands[:2]
    removed = bool({"prune", "rm", "remove", "delete", "reset"} & set(first[1:2]))
    removed = removed or first[:1] in (("rm",), ("rmi",), ("kill",), ("push",), ("login",), ("swarm",))
    return removed or _opens(simple) or ("down" in simple.operands and simple.has("v", "--volumes", "--rmi"))


def _opens(simple: Simple) -> bool:
    """Whether a container gets the machine's own folders, devices, network or rights."""
    if any(_CONTAINER_DANGER.fullmatch(word) for word in simple.arguments):
        return True
    mounted = [simple.value("-v", "--volume"), re.sub(r".*(src|source)=([^,]*).*", r"\2", simple.value("--mount"))]
    spaces = any(a in ("--pid", "--net", "--network", "--ipc") and b == "host" for a, b in pairwise(simple.arguments))
    return spaces or any(_MACHINE.match(folder) for folder in mounted)


_MACHINE = re.compile(r"(/|/etc|/root|/home|/var|(/var)?/run/docker\.sock|/usr|/dev|/proc|/sys|~)(:|$)")
