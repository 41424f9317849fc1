"""Network of walled commands: makes their connections for them, to their session's own servers and the proxy only."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from fcntl import F_GETFL, F_SETFL, fcntl
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from hermes_agent.sandbox.landlock import restrict_tcp
from hermes_agent.sandbox.seccomp import (
    ALLOWED,
    AND,
    HANDED_OVER,
    HAS,
    Handler,
    Refused,
    Request,
    Step,
    Waiting,
    argument,
    checked,
    error,
    is_supported,
    libc,
    numbers,
    when,
)
from hermes_agent.sandbox.traffic import REACHED, Callers, Traffic

HERE = "127.0.0.1"
DIRECT = "localhost,127.0.0.1,::1"
GETFD, OPENAT2, IN_ROOT = 438, 437, 0x10
LONGEST_ADDRESS = 128
MOST_BACKLOG = 1 << 16
MAPPED = bytes(10) + b"\xff\xff"
TCP, LISTENS = 6, 1 << 10
THREAD = os.O_EXCL  # PIDFD_THREAD
# linux/sock_diag.h, linux/unix_diag.h
SOCK_DIAG, DIAG_BY_FAMILY, ONE, DUMP, SHOW_FILE, FILE_OF, ANY = 4, 20, 1, 0x301, 2, 1, 0xFFFF_FFFF
# Numbers and bits: sys/socket.h.
FAST_OPEN = 0x2000_0000  # MSG_FASTOPEN: a `send` that connects
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, SEQUENCES, KIND = 1, 5, 15
ROUTE = 0
# Names of calls and their numbers on x86-64 and on ARM; those that connect with `FAST_OPEN` with the place of its flag.
CALLS = "socket 41 198, connect 42 203, listen 50 201"
PAIR = "socketpair 53 199"  # of those for datagrams each half sends to any name
SENDS = {"sendto 44 206": 3, "sendmsg 46 211": 2, "sendmmsg 307 269": 3}
Address = IPv4Address | IPv6Address


class Proxy(Protocol):
    """The way out.

    - `open` starts it in the running loop where it does not run there yet, and returns its port on 127.0.0.1;
    - it asks `callers` for the command behind a connection, serves nobody else, and notes there what is reached.
    """

    callers: Callers

    async def open(self) -> int: ...

    async def close(self) -> None: ...


class Network:
    """Watches the connections of walled commands. `proxy`: None where they reach their session's servers alone;
    `direct` are addresses with ports that they reach besides, as in `127.0.0.1:5432`."""

    def __init__(self, proxy: Proxy | None = None, direct: tuple[str, ...] = ()) -> None:
        self._proxy = proxy
        self._callers = proxy.callers if proxy else Callers()
        self._direct = frozenset(direct)
        self._port = 0
        self._servers = WeakValueDictionary[int, Traffic]()  # of commands that go on

    async def open(self) -> None:
        """Start the proxy, before a command starts, where connections can be watched."""
        if self._proxy is not None and is_supported():
            self._port = await self._proxy.open()

    async def close(self) -> None:
        """End it."""
        if self._proxy is not None:
            await self._proxy.close()

    def variables(self) -> Mapping[str, str]:
        """What tells programs of the proxy."""
        if not self._port:
            return {}
        address = f"http://{HERE}:{self._port}"
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        return {**dict.fromkeys(names, address), "no_proxy": DIRECT, "NO_PROXY": DIRECT, "NODE_USE_ENV_PROXY": "1"}

    def handlers(self) -> tuple[Handler, ...]:
        """What answers for the connections of a command. None where they cannot be watched: a jail closes the network
        then."""
        acts = {"socket": self._refuse_datagram, "listen": self._listen, "connect": self._connect}
        found = {number: acts[name] for name, number in numbers(CALLS).items()}
        return (Handler(steps=steps(), acts=found, enter=restrict_tcp),) if is_supported() else ()

    def _refuse_datagram(self, request: Request) -> int:
        is_look_up = request.arguments[1] & os.O_NONBLOCK
        raise Refused("a datagram, as for the look-up of a name" if is_look_up else "")

    def _listen(self, request: Request) -> int:
        with _socket(request) as found:
            found.listen(min(request.arguments[1], MOST_BACKLOG))
            self._servers[os.fstat(found.fileno()).st_ino] = request.traffic
        return 0

    def _connect(self, request: Request) -> int | Waiting:
        """Connect on a copy of the address that it gave."""
        _, where, length, *_ = request.arguments
        address = request.memory(where, min(length & 0xFFFF_FFFF, LONGEST_ADDRESS))
        with _socket(request) as found:
            return self._connect_to(request, found, address)

    def _connect_to(self, request: Request, found: socket.socket, address: bytes) -> int | Waiting:
        (family,) = struct.unpack_from("=H", address)
        if family == socket.AF_UNSPEC and found.family in (socket.AF_INET, socket.AF_INET6):
            return _connect(found, address)  # ends a connection
        if family != found.family or (family != socket.AF_UNIX and found.proto != socket.IPPROTO_TCP):
            raise Refused(number=errno.EAFNOSUPPORT)
        if family == socket.AF_UNIX:
            return self._connect_local(request, found, address[2:])
        host, port = _parsed(family, address)
        checked_address = _packed(family, host, port)
        if (str(host), port) != (HERE, self._port):
            self._check(request.traffic, host, port)
            return _begin(found, checked_address)
        with self._callers.connecting() as ports:
            answer = _begin(found, checked_address)
            if isinstance(answer, Waiting) or answer in (0, errno.EINPROGRESS):
                ports[found.getsockname()[1]] = request.traffic
        return answer

    def _check(self, traffic: Traffic, host: Address, port: int) -> None:
        """Raises `Refused` unless the command may connect there; notes whom it talks to."""
        listening = _listening(host, port) if host.is_loopback else frozenset()
        owners = [owner for inode in listening if (owner := self._servers.get(inode)) and owner.group == traffic.group]
        name = f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}"
        if owners and len(owners) == len(listening):
            for owner in owners:
                traffic.link(owner)
        elif name in self._direct:
            traffic.note(REACHED, name)
        elif host.is_loopback and not listening:
            raise Refused(number=errno.ECONNREFUSED)
        else:
            raise Refused(f"a connection to {name}")

    def _connect_local(self, request: Request, found: socket.socket, name: bytes) -> int:
        """Connect to a socket in the file system as the command sees it, where its session listens there."""
        if name[:1] in (b"", b"\0"):
            raise Refused("a connection to a local socket without a file")
        path = os.path.join(os.readlink(f"/proc/{request.pid}/cwd"), os.fsdecode(name.partition(b"\0")[0]))  # noqa: PTH115, PTH118 - of another process
        try:
            file = _open_seen(request.pid, path)
        except FileNotFoundError:
            hidden = Path(path).is_socket()
            raise Refused(f"a connection to {path}" if hidden else "", errno.ENOENT) from None
        try:
            status = os.fstat(file)
            wanted = (os.major(status.st_dev) << 20 | os.minor(status.st_dev), status.st_ino)
            mine = [(inode, owner) for inode, owner in self._servers.items() if owner.group == request.traffic.group]
            owner = next((owner for inode, owner in mine if _file_of(inode) == wanted), None)
            if owner is None:
                raise Refused(f"a connection to {path}")
            request.traffic.link(owner)
            return _try(found, struct.pack("=H", socket.AF_UNIX) + b"/proc/self/fd/%d" % file)
        finally:
            os.close(file)


def _begin(found: socket.socket, address: bytes) -> int | Waiting:
    """Connect. A socket that blocks is answered for when it is connected; meanwhile others are served."""
    number = _try(found, address)
    if number != errno.EINPROGRESS or fcntl(found, F_GETFL) & os.O_NONBLOCK:
        return number
    kept = socket.socket(fileno=os.dup(found.fileno()))
    return Waiting(socket=kept, finish=partial(_try, kept, address))


def _socket(request: Request) -> socket.socket:
    """Its socket, which stays the same one whatever the command puts under that number now."""
    try:
        process = os.pidfd_open(request.pid, THREAD)
    except OSError:  # before 6.9 only a process has a handle
        with Path(f"/proc/{request.pid}/status").open() as status:
            number = next(line.split()[1] for line in status if line.startswith("Tgid:"))
        process = os.pidfd_open(int(number))
    try:
        request.check()
        return socket.socket(fileno=checked(libc().syscall(GETFD, process, request.arguments[0] & 0xFFFF_FFFF, 0)))
    finally:
        os.close(process)


def _connect(found: socket.socket, address: bytes) -> int:
    """The error, 0 for none."""
    return ctypes.get_errno() if libc().connect(found.fileno(), address, len(address)) else 0


def _try(found: socket.socket, address: bytes) -> int:
    """The same without waiting."""
    flags = fcntl(found, F_GETFL)
    fcntl(found, F_SETFL, flags | os.O_NONBLOCK)
    try:
        return _connect(found, address)
    finally:
        fcntl(found, F_SETFL, flags)


def _parsed(family: int, address: bytes) -> tuple[Address, int]:
    """Host and port; an IPv4 address in an IPv6 one is that address, and that of no host is this machine."""
    first, length = (4, 4) if family == socket.AF_INET else (8, 16)
    if len(address) < first + length:
        raise Refused(number=errno.EINVAL)
    host = ip_address(address[first : first + length])
    host = getattr(host, "ipv4_mapped", None) or host
    if host.is_unspecified:
        host = ip_address(HERE if host.version == 4 else "::1")
    return host, struct.unpack_from("!H", address, 2)[0]


def _packed(family: int, host: Address, port: int) -> bytes:
    if family == socket.AF_INET:
        return struct.pack("=H", family) + struct.pack("!H4s8x", port, host.packed)
    mapped = host.packed if host.version == 6 else MAPPED + host.packed
    return struct.pack("=H", family) + struct.pack("!H4x16s4x", port, mapped)


def _listening(host: Address, port: int) -> frozenset[int]:
    """The sockets that may be reached under this address (sock_diag(7); /proc/net/tcp takes 30 ms)."""
    found = set()
    for family, length in ((socket.AF_INET, 4), (socket.AF_INET6, 16)):
        for row in _diagnosed(
            struct.pack("!BBxx", family, TCP) + struct.pack("=I", LISTENS) + struct.pack("!H46x", port)
        ):
            bound = ip_address(row[8 : 8 + length])
            bound = getattr(bound, "ipv4_mapped", None) or bound
            if bound == host or (bound.is_unspecified and bound.version >= host.version):
                found.add(struct.unpack_from("=I", row, 68)[0])
    return frozenset(found)


def _diagnosed(request: bytes, flags: int = DUMP) -> Iterator[bytes]:
    """What the kernel says of its sockets, without the header of each message."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(request), DIAG_BY_FAMILY, flags, 0, 0) + request)
        answer = kernel.recv(1 << 16)
        while answer and struct.unpack_from("=H", answer, 4)[0] == DIAG_BY_FAMILY:
            (length,) = struct.unpack_from("=I", answer)
            yield answer[16:length]
            answer = answer[(length + 3) & ~3 :] or (kernel.recv(1 << 16) if flags == DUMP else b"")


def _open_seen(pid: int, path: str) -> int:
    """A handle of a file as that process sees it: links lead where they lead there."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, IN_ROOT)
    try:
        return checked(libc().syscall(OPENAT2, root, os.fsencode(path), how, len(how)))
    finally:
        os.close(root)


def _file_of(inode: int) -> tuple[int, int] | None:
    """Device and number of the file at which this local socket listens (sock_diag(7))."""
    request = struct.pack("=BBHIIIQ", socket.AF_UNIX, 0, 0, ANY, inode, SHOW_FILE, (1 << 64) - 1)
    for row in _diagnosed(request, ONE):
        if len(row) >= 28 and (found := struct.unpack_from("=HHII", row, 16))[1] == FILE_OF:
            return found[3], found[2]
    return None


def steps(machine: str = "") -> tuple[Step, ...]:
    """What hands connections over. A socket for datagrams is handed over too: it is refused with a word about it."""
    calls, refuse = numbers(CALLS, machine), [error(errno.EACCES)]
    kind = [argument(1), (AND, 0, 0, KIND)]
    unix = [*kind, *when(STREAM, [ALLOWED]), *when(SEQUENCES, [ALLOWED]), *refuse]
    tcp = [argument(2), *when(0, [ALLOWED]), *when(TCP, [ALLOWED]), *refuse]
    inet = [*kind, *when(STREAM, tcp), HANDED_OVER]
    netlink = [argument(2), *when(ROUTE, [ALLOWED]), *refuse]
    families = ((UNIX, unix), (INET, inet), (INET6, inet), (NETLINK, netlink))
    socket = [argument(0), *(step for family, then in families for step in when(family, then))]
    fast_open = ((HAS, 0, 1, FAST_OPEN), error(errno.EOPNOTSUPP), ALLOWED)
    sends = [(number, flags) for row, flags in SENDS.items() for number in numbers(row, machine).values()]
    return (
        *when(calls["connect"], [HANDED_OVER]),
        *when(calls["listen"], [HANDED_OVER]),
        *when(calls["socket"], [*socket, error(errno.EAFNOSUPPORT)]),
        *(step for number in numbers(PAIR, machine).values() for step in when(number, unix)),
        *(step for number, flags in sends for step in when(number, [argument(flags), *fast_open])),
    )
