"""Canned streams of the dialects that have no SDK to be measured beside: Responses, Gemini, Converse."""

import json

from tests.doubles.aws_stream import event


def response_events(count: int) -> list[bytes]:
    def sse(kind: str, **fields: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    words = (
        sse("response.output_text.delta", output_index=0, content_index=0, item_id="msg_1", delta=f" word{place}")
        for place in range(count)
    )
    usage = {"input_tokens": 10, "output_tokens": count}
    return [
        sse("response.output_item.added", output_index=0, item=item),
        *words,
        sse("response.output_item.done", output_index=0, item=item),
        sse("response.completed", response={"id": "resp_1", "output": [item], "usage": usage}),
    ]


def gemini_events(count: int) -> list[bytes]:
    def chunk(text: str, **more: object) -> bytes:
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **more}
        return b"data: " + json.dumps({"candidates": [candidate], "responseId": "r1"}).encode() + b"\r\n\r\n"

    return [*(chunk(f" word{place}") for place in range(count)), chunk(" end", finishReason="STOP")]


def converse_events(count: int) -> list[bytes]:
    words = (
        event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": f" word{place}"}})
        for place in range(count)
    )
    return [
        event("messageStart", {"role": "assistant"}),
        *words,
        event("contentBlockStop", {"contentBlockIndex": 0}),
        event("messageStop", {"stopReason": "end_turn"}),
        event("metadata", {"usage": {"inputTokens": 10, "outputTokens": count, "totalTokens": count + 10}}),
    ]
