"""Steps of a kernel filter (seccomp) that hand each `connect` and `listen` of a command over."""

from __future__ import annotations

import errno

from hermes_agent.sandbox.seccomp import (
    ALLOWED,
    AND,
    HANDED_OVER,
    HAS,
    Step,
    argument,
    error,
    numbers,
    when,
)

# Numbers and bits: sys/socket.h.
FAST_OPEN = 0x2000_0000  # MSG_FASTOPEN: a `send` that connects
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, SEQUENCES, KIND = 1, 5, 15
TCP, ROUTE = 6, 0
# Names of calls and their numbers on x86-64 and on ARM; those that connect with `FAST_OPEN` with the place of its flag.
CALLS = "socket 41 198, connect 42 203, listen 50 201"
SENDS = {"sendto 44 206": 3, "sendmsg 46 211": 2, "sendmmsg 307 269": 3}


def steps(machine: str = "") -> tuple[Step, ...]:
    """A socket for datagrams is handed over too: it is refused with a word about it."""
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
        *(step for number, flags in sends for step in when(number, [argument(flags), *fast_open])),
    )
