"""Mail parser: turns a mail's bytes into a `Mail`, or raises `Unreadable`, whatever the content."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.email.trust import automatic, vouched
from hermes_agent.gateway.email.words import is_signature, own_words, visible_text, without_quotes
from hermes_agent.host.process import WORK_SECONDS, Ended, apart

OWN_IDS = "hermes."
"""How the local part of each own Message-ID begins."""
HASHED = "sha256-"
"""How the id of a mail begins that has none of its own."""
LONGEST_TEXT = 400_000
MOST_PARTS = 100
MOST_PEOPLE = 20
"""People of a mail that is still a conversation; with more it is a circular, which is not answered."""
DECORATION = 10_000
"""Bytes below which a picture within the text is a logo or a tracking mark."""
ID = re.compile(r"<([!#-;=?-\[\]-~]{1,200})>")
"""A Message-ID as it can be searched for on every server: no quotes, no backslashes, not over 200 characters."""
ADDRESS = re.compile(r"[^\s\x00-\x1f\x7f@<>\",;:\\()\[\]]{1,64}@[^\s\x00-\x1f\x7f@<>\",;:\\()\[\]]{1,255}")
"""No signs that steer either: not every database keeps them, and no mail server takes them."""
ASCII, MEANT = ("us-ascii", "ascii"), {"iso-8859-1": "cp1252", "latin-1": "cp1252"}
"""What programs of mail call their text that write more than that, and what they mean."""
BY_PROGRAMS = re.compile(r"^(?:>|[\w-]+:).*|^.*:$|<[^<>\s]{1,200}>", re.MULTILINE)
"""Where programs of mail name people: what is quoted or was forwarded, the line before that, angle brackets."""
FORWARDED = re.compile(r"^\s*(?:fwd?|wg|tr|rv|i)\s*:", re.IGNORECASE)


class Unreadable(Exception):
    """Bytes are not an acceptable mail; the error message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """An attachment of a mail."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A parsed mail.

    - `id`: its Message-ID without brackets (a hash if it has no usable one); `root`: that of the thread's first
      mail;
    - `people`: all addresses but the own one, the sender first; `named`: people's addresses that mail programs wrote
      into its text;
    - `automatic`: why it is automatic (empty: a person may have written it);
    - `vouched`: whether the own server authenticated the sender.
    """

    id: str
    root: str
    references: tuple[str, ...]
    sender: str
    name: str
    people: tuple[str, ...]
    named: tuple[str, ...]
    addressed: bool
    subject: str
    text: str
    quoted: str
    is_forwarded: bool
    at: float
    files: tuple[Enclosed, ...]
    automatic: str
    vouched: bool


def read(raw: bytes, own: str, server: str = "") -> Mail:
    """Parse a mail addressed to `own`; `server` is the trusted authserv-id (empty: senders are not authenticated).
    Slow for malicious mail: see `apart`."""
    try:
        return _mail(raw, own, server)
    except (MessageError, RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(f"The mail cannot be taken apart ({type(error).__name__}).") from error


def _mail(raw: bytes, own: str, server: str) -> Mail:
    message = message_from_bytes(raw)
    parts = list(_leaves(message))
    name, sender = _author(message)
    id_ = (message_ids(message, "Message-ID") or (f"{HASHED}{hashlib.sha256(raw).hexdigest()[:40]}",))[0]
    references = message_ids(message, "References") or message_ids(message, "In-Reply-To")
    to, copied = addresses(message, "To"), addresses(message, "Cc")
    subject = header(message, "Subject")
    known = any(each.startswith(OWN_IDS) for each in references) and not FORWARDED.match(subject)
    written, whole = (_words(parts, quotes=quotes)[:LONGEST_TEXT] for quotes in (False, True))
    text, quoted = own_words(written), ""
    if is_signature(rest := whole.removeprefix(text).strip()):
        text = text if known else whole
    elif not known or text != written:
        quoted = rest
    return Mail(
        id=id_,
        root=references[0] if references else id_,
        references=references,
        sender=sender,
        name=name,
        people=tuple(dict.fromkeys(each for each in (sender, *to, *copied) if each != own)),
        named=tuple(each for each in _named(whole) if each != own),
        addressed=own in to,
        subject=subject,
        text=text,
        quoted=quoted,
        is_forwarded=bool(FORWARDED.match(subject)),
        at=_date(message),
        files=tuple(_files(parts)),
        automatic=automatic(message, sender),
        vouched=not server or vouched(message, server, sender.partition("@")[2]),
    )


def _named(text: str) -> dict[str, None]:
    found = (each.rstrip(".").lower() for place in BY_PROGRAMS.findall(text) for each in ADDRESS.findall(place))
    return dict.fromkeys(found)


def header(message: Message, name: str) -> str:
    """A header decoded to one line; empty if missing."""
    value = next((_unencoded(str(raw)) for key, raw in message.raw_items() if key.lower() == name.lower()), "")
    return " ".join(_encoded(value).split())


def _encoded(value: str) -> str:
    """Decode encoded words (RFC 2047)."""
    try:
        return _whole(str(make_header(decode_header(value))))
    except (MessageError, LookupError, ValueError):  # An encoding that nobody knows: as it stands there.
        return _whole(value)


def _unencoded(value: str) -> str:
    """Decode a header with raw bytes, which Python reads as surrogates."""
    return value if value.isascii() else _guessed(value.encode("utf-8", "surrogateescape"))


def _guessed(content: bytes) -> str:
    """Decode bytes of unknown encoding as UTF-8, else cp1252."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _whole(text: str) -> str:
    """The text with lone surrogates, which no store accepts, replaced."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def message_ids(message: Message, name: str) -> tuple[str, ...]:
    """Message-IDs in a header, without brackets."""
    return tuple(ID.findall(str(message.get(name, ""))))


def addresses(message: Message, name: str) -> tuple[str, ...]:
    """Mail addresses in a header, in lower case."""
    found = getaddresses([str(value) for value in message.get_all(name, [])])
    return tuple(address for _, each in found if (address := each.strip().lower()) and is_address(address))


def is_address(text: str) -> bool:
    """Whether the text is one plain address, safe for use in a header."""
    return ADDRESS.fullmatch(text) is not None


def _author(message: Message) -> tuple[str, str]:
    """The sender's name and address. Raises `Unreadable` unless there is exactly one."""
    found = addresses(message, "From")
    if len(found) != 1 or len(message.get_all("From", [])) != 1:
        raise Unreadable("The mail does not name one sender.")
    names = getaddresses([header(message, "From")])
    return (names[0][0] if names else ""), found[0]


def _date(message: Message) -> float:
    try:
        return parsedate_to_datetime(str(message.get("Date"))).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0


def _leaves(message: Message) -> Iterator[tuple[int, Message]]:
    """The content parts in order, each with the number of its multipart/alternative; an attached mail is one part."""
    stack: list[tuple[int, Message]] = [(0, message)]
    seen = 0
    while stack and seen < MOST_PARTS:
        choice, part = stack.pop()
        seen += 1
        payload = part.get_payload()
        if part.get_content_maintype() != "multipart" or not isinstance(payload, list):
            yield choice, part
            continue
        if part.get_content_subtype() == "alternative":
            choice = seen
        stack += [(choice, each) for each in reversed(payload) if isinstance(each, Message)]


def _is_file(part: Message) -> bool:
    text = part.get_content_type() in ("text/plain", "text/html")
    return not text or part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _words(parts: list[tuple[int, Message]], *, quotes: bool) -> str:
    """The text of a mail. Of alternatives the HTML is used: it is what people see, so hidden text can be left out."""
    texts = [(choice, part) for choice, part in parts if not _is_file(part)]
    drawn = {choice for choice, part in texts if choice and part.get_content_subtype() == "html"}
    pieces: list[str] = []
    for choice, part in texts:
        text = _decoded(part)
        if part.get_content_subtype() == "html":
            pieces.append(visible_text(text, quotes=quotes))
        elif choice not in drawn:
            pieces.append(text if quotes else without_quotes(text))
    return "\n\n".join(filter(None, (piece.strip() for piece in pieces)))


def _decoded(part: Message) -> str:
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    charset = part.get_content_charset("us-ascii")
    try:
        text = _guessed(content) if charset in ASCII else content.decode(MEANT.get(charset, charset), "replace")
    except (LookupError, ValueError):  # No such encoding, or one that is for something else.
        text = content.decode("utf-8", "replace")
    return _whole(text).replace("\r\n", "\n").replace("\0", "")


def _files(parts: list[tuple[int, Message]]) -> Iterator[Enclosed]:
    for number, (_, part) in enumerate(parts, 1):
        if not _is_file(part):
            continue
        content = _content(part)
        inline = part.get_content_disposition() != "attachment" and part.get_content_maintype() == "image"
        if content and not (inline and len(content) < DECORATION):
            yield Enclosed(name=_file_name(part, number), media_type=part.get_content_type(), content=content)


def _content(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    if isinstance(payload, bytes):
        return payload
    inner = part.get_payload()
    if isinstance(inner, list) and inner and isinstance(inner[0], Message):
        return inner[0].as_bytes()
    return b""


def _file_name(part: Message, number: int) -> str:
    return (
        _encoded(part.get_filename() or "")
        or f"part-{number}{mimetypes.guess_extension(part.get_content_type()) or ''}"
    )


TOLD = "hermes_agent.gateway.email.reading:parsed"


async def read_apart(raw: bytes, own: str, server: str = "", *, work: int = WORK_SECONDS, by: str = TOLD) -> Mail:
    """Run `read` in a subprocess with a limit of `work` CPU seconds (the largest mail needs two or three). Raises
    `Unreadable`; `NotNow` if no subprocess can run now. `by` names the parser."""
    try:
        out = await apart(by, raw, own, server, work=work)
    except OSError as error:
        raise NotNow(f"Mail cannot be read now: {error.strerror}") from error
    except Ended as error:
        await _still_reads(by)
        raise Unreadable(f"Reading the mail was ended: {error}") from error
    found = msgspec.msgpack.decode(out, type=Mail | str)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


async def _still_reads(by: str) -> None:
    """Raise `NotNow` if even an empty mail cannot be parsed: then the mail is not at fault."""
    try:
        await apart(by, b"", "", "")
    except (Ended, OSError) as error:
        raise NotNow(f"No mail can be read now: {error}") from error


def parsed(raw: bytes, own: str, server: str) -> bytes:
    """Subprocess side of `read_apart`: the encoded mail, or why it is unreadable."""
    try:
        return msgspec.msgpack.encode(read(raw, own, server))
    except Unreadable as error:
        return msgspec.msgpack.encode(str(error))
