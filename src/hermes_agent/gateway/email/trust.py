"""Sender checks from mail headers: automatic mail detection (RFC 3834) and authentication results (RFC 8601)."""

from __future__ import annotations

import re
from email.message import Message

BULK = frozenset({"bulk", "junk", "list", "auto_reply"})
LISTS = ("List-Id", "List-Post", "List-Help", "List-Subscribe", "List-Unsubscribe")
ANSWERING = ("X-Autoreply", "X-Autorespond", "X-Loop")
"""Headers that programs set in what they send by themselves, beside those of RFC 3834 and RFC 2919."""
SUPPRESS, ALL = "X-Auto-Response-Suppress", re.compile(r"\ball\b", re.IGNORECASE)
"""What programs say with `All`; with a list of kinds it stands in the mail of whole organisations."""
MACHINES = frozenset({"mailer-daemon", "postmaster", "noreply", "no-reply", "donotreply", "do-not-reply", "bounce"})
TOLD = re.compile(r"(?P<quoted>\"(?:[^\"\\]|\\.)*\")|\\.|(?P<sign>[()\"])", re.DOTALL)
"""What is more than the sign it is: words in quotes, an escaped sign, and the signs that begin and end a comment."""
MEANT = re.compile(r"[\s;=\"\\]")
"""Signs that mean nothing within quotes: a sender chooses what stands there."""
RESULT = re.compile(r"^\s*([\w.-]+)\s*=\s*([\w-]+)(.*)$", re.DOTALL)
PROPERTY = re.compile(r"([\w-]+\.[\w-]+)\s*=\s*([^\s;]+)")


def automatic(message: Message, sender: str) -> str:
    """Why a mail is automatic and must not be answered (RFC 3834); empty if a person may have written it."""
    auto = str(message.get("Auto-Submitted", "no")).split(";")[0].strip().lower()
    if auto != "no":
        return f"Auto-Submitted: {auto}"
    if (precedence := str(message.get("Precedence", "")).strip().lower()) in BULK:
        return f"Precedence: {precedence}"
    for name in (*LISTS, *ANSWERING, SUPPRESS):
        if (value := message.get(name)) is not None and (name != SUPPRESS or ALL.search(str(value))):
            return name
    if str(message.get("Return-Path", "")).strip() == "<>":
        return "a bounce"
    if message.get_content_type() == "multipart/report":
        return "a report"
    local = sender.partition("@")[0]
    return f"from {local}" if local in MACHINES else ""


def vouched(message: Message, server: str, domain: str) -> bool:
    """Whether `server` (an authserv-id, RFC 8601) confirms that the mail comes from `domain`: by DMARC, or DKIM or
    SPF for that domain or a parent. Only its topmost header counts: lower ones may be forged."""
    for value in message.get_all("Authentication-Results", []):
        text = _plain(str(value))
        if text is None:
            return False  # Whose it is cannot be told, and what stands below it may be the sender's.
        said_by, *results = text.split(";")
        if said_by.split()[:1] == [server]:
            return any(_passes(result, domain) for result in results)
    return False


def _plain(value: str) -> str | None:
    """A header without comments and quotes (RFC 8601, 2.2); None if one is unterminated."""
    kept: list[str] = []
    depth = end = 0
    for found in TOLD.finditer(value):
        kept.append("" if depth else value[end : found.start()])
        end = found.end()
        if found["quoted"] and not depth:
            kept.append(MEANT.sub("_", found["quoted"][1:-1]))
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth < 0 or found["sign"] == '"':
            return None
    return None if depth else "".join((*kept, value[end:]))


def _passes(result: str, domain: str) -> bool:
    found = RESULT.match(result)
    if found is None or found[2].lower() != "pass":
        return False
    properties = {name.lower(): value.lower() for name, value in PROPERTY.findall(found[3])}
    match found[1].lower():
        case "dmarc":
            return properties.get("header.from") == domain
        case "dkim":
            signed = properties.get("header.d") or properties.get("header.i", "").rpartition("@")[2]
            return _within(domain, signed)
        case "spf":
            return _within(domain, properties.get("smtp.mailfrom", "").rpartition("@")[2])
    return False


def _within(domain: str, other: str) -> bool:
    """Whether `other` is the domain or a parent of it, but no top-level domain."""
    return "." in other and (domain == other or domain.endswith(f".{other}"))
