"""Pictures on the terminal's screen, where it can show them (kitty, iTerm2 and those that follow them)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping

from hermes_agent.cli.chat.text import DIM, paint
from hermes_agent.core.messages import Image, Message, ToolResult
from hermes_agent.core.shown import plural

ROWS = 12
"""Lines that a picture takes."""
CHUNK = 4_096
"""Characters of one piece in kitty's protocol."""
MOST_SHOWN = 4
LARGEST = 8_000_000
"""Characters in base64 of a picture that is still drawn."""
PNG = "image/png"

Draw = Callable[[Image], str]
"""The sequence that draws a picture, empty where it cannot be drawn."""


def drawing(variables: Mapping[str, str]) -> Draw | None:
    """How this terminal draws pictures; None if it cannot. Inside tmux or screen, and over a plain ssh whose variables
    say nothing, it cannot."""
    program, term = variables.get("TERM_PROGRAM", ""), variables.get("TERM", "")
    if variables.get("TMUX") or term.startswith(("screen", "tmux")):
        return None
    if variables.get("KITTY_WINDOW_ID") or term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty":
        return kitty
    return iterm if program in ("iTerm.app", "WezTerm", "mintty") or variables.get("LC_TERMINAL") == "iTerm2" else None


def kitty(picture: Image) -> str:
    """The picture in kitty's graphics protocol, which takes PNG alone."""
    if picture.media_type != PNG:
        return ""
    pieces = [picture.data[at : at + CHUNK] for at in range(0, len(picture.data), CHUNK)]
    sequences = []
    for place, piece in enumerate(pieces):
        more = int(place < len(pieces) - 1)
        head = f"a=T,f=100,r={ROWS},q=2,m={more}" if place == 0 else f"m={more}"
        sequences.append(f"\x1b_G{head};{piece}\x1b\\")
    return "".join(sequences)


def iterm(picture: Image) -> str:
    """The picture in iTerm2's inline image protocol."""
    size = len(picture.data) * 3 // 4
    return f"\x1b]1337;File=inline=1;height={ROWS};preserveAspectRatio=1;size={size}:{picture.data}\x07"


def pictures_of(message: Message) -> Iterator[Image]:
    """The pictures of a message, those in results of calls too, as far as their bytes are there."""
    for part in message.parts:
        for each in part.parts if isinstance(part, ToolResult) else (part,):
            if isinstance(each, Image) and each.data:
                yield each


def picture_lines(message: Message, draw: Draw | None) -> list[str]:
    """The pictures of a message, each as drawn or as a line that names it."""
    found = list(pictures_of(message))
    lines = [_line(picture, draw) for picture in found[:MOST_SHOWN]]
    if len(found) > MOST_SHOWN:
        lines.append(paint(f"  … {plural(len(found) - MOST_SHOWN, 'more picture')}", DIM))
    return lines


def _line(picture: Image, draw: Draw | None) -> str:
    drawn = draw(picture) if draw is not None and _is_base64(picture.data) else ""
    return drawn or paint(f"  [picture, {picture.media_type}, {len(picture.data) * 3 // 4:,} bytes]", DIM)


def _is_base64(data: str) -> bool:
    """Whether nothing in it could end the sequence early."""
    if len(data) > LARGEST:
        return False
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return False
    return True
