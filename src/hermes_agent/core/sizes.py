"""How much of a window a message takes, before a provider has counted it."""

from __future__ import annotations

from hermes_agent.core.messages import File, Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.section import BYTES_PER_TOKEN, estimate_tokens

# What a picture of common size costs at the large providers (1,000 to 1,600 tokens); the base64 says nothing of it.
IMAGE_TOKENS = 1500
# Role, separators and ids around the words of a message.
FRAME_TOKENS = 8


def tokens_of(message: Message) -> int:
    """Tokens of a message by bytes / 4; a picture by a flat figure, a document by the size of its content."""
    return FRAME_TOKENS + sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: Part) -> int:
    match part:
        case Text(text=text):
            return estimate_tokens(text)
        case Thinking(text=text, opaque=opaque):
            return estimate_tokens(text) + len(opaque) // BYTES_PER_TOKEN
        case Image():
            return IMAGE_TOKENS
        case File(data=data):
            return IMAGE_TOKENS + len(data) * 3 // 4 // BYTES_PER_TOKEN
        case ToolCall(name=name, arguments=arguments, broken=broken):
            return FRAME_TOKENS + estimate_tokens(f"{name}{arguments}{broken}")
        case ToolResult(parts=parts):
            return FRAME_TOKENS + sum(_part_tokens(inner) for inner in parts)
