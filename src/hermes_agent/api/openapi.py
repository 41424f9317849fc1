"""Generates the OpenAPI description from the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hermes_agent.api.endpoint import Endpoint, Nothing
from hermes_agent.api.problems import ErrorAnswer
from hermes_agent.version import VERSION

SLOT = re.compile(r"\{(\w+)(?::path)?\}")
NO_WORD = re.compile(r"\W+")
JSON = "application/json"
EVENTS = "text/event-stream"
PLAIN = {JSON: {"schema": {"type": "object"}}, "text/plain": {"schema": {"type": "string"}}}
"""Answers that are no record, as the description has them; of events it says nothing more."""


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The OpenAPI 3.1 document as plain values."""
    kinds = {kind for each in endpoints for kind in (each.body, each.query, each.answer) if kind is not None}
    kinds = (kinds - {Nothing}) | {ErrorAnswer}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    known = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        path = SLOT.sub(r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, known, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes", "version": VERSION, "description": "The agent, for programs."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _operation(each: Endpoint, known: dict[type[Any], Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": each.summary,
        "operationId": f"{each.method.lower()}_{NO_WORD.sub('_', each.path).strip('_')}",
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in SLOT.findall(each.path)
        ],
        "responses": {str(each.status): _answer(each, known), "default": _problem(known)},
    }
    if each.is_open:
        operation["security"] = []
    if each.query is not Nothing:
        schema = components[each.query.__name__]
        required = schema.get("required", ())
        operation["parameters"] += [
            {"name": name, "in": "query", "required": name in required, "schema": kind}
            for name, kind in schema["properties"].items()
        ]
    if each.body is not Nothing:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": known[each.body]}}}
    return operation


def _answer(each: Endpoint, known: dict[type[Any], Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if each.answer is not None:
        content[JSON] = {"schema": known[each.answer]}
    else:
        content[each.media_type] = PLAIN.get(each.media_type, {})
    if each.streams:
        content[EVENTS] = {}
    return {"description": "Done.", "content": content}


def _problem(known: dict[type[Any], Any]) -> dict[str, Any]:
    return {"description": "Not done, and why.", "content": {JSON: {"schema": known[ErrorAnswer]}}}
