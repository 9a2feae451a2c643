"""The fields that a request may have: what the reference says of each, and what is checked."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl

from dibs.model.errors import short
from dibs.serve.problems import Refusal

TEXT, WHOLE, NUMBER, FLAG, NAMES, BYTES, TABLE = (
    "text",
    "whole number",
    "number",
    "true or false",
    "list of texts",
    "base64",
    "object",
)
"""The kinds of a field."""
_PARAMETERS = 100
"""The most parameters of a query."""
_TYPES = {TEXT: "string", WHOLE: "integer", NUMBER: "number", FLAG: "boolean", BYTES: "string"}


class Field(NamedTuple):
    """One field of a body or one parameter of a query."""

    kind: str
    text: str
    """What the reference says of it."""
    least: float = 0
    most: float = 4096
    """The highest number, the most characters of a text, or the most texts of a list."""
    needed: bool = False
    default: object = None
    code: str = "invalid_field"
    words: tuple[str, ...] = ()
    """What a text may be, if it has to be one of a few words."""

    @property
    def schema(self) -> dict[str, object]:
        """The field as JSON schema."""
        if self.kind == NAMES:
            items = {"type": "string", "maxLength": 4096}
            found: dict[str, object] = {"type": "array", "items": items, "maxItems": self.most}
        elif self.kind == TABLE:
            found = {"type": "object"}
        else:
            found = {"type": _TYPES[self.kind]}
        if self.kind in (WHOLE, NUMBER):
            found |= {"minimum": self.least, "maximum": self.most}
        if self.kind in (TEXT, BYTES) and not self.words:
            found |= {"minLength": self.least} if self.least else {}
            found["maxLength"] = self.most
        if self.kind == BYTES:
            found["contentEncoding"] = "base64"
        if self.words:
            found["enum"] = list(self.words)
        if self.default is not None:
            found["default"] = self.default
        return found | {"description": self.text}

    def read(self, name: str, value: object) -> Any:
        """The value, if it is valid."""
        match self.kind:
            case "whole number" | "number":
                return self._number(name, value)
            case "true or false":
                if not isinstance(value, bool):
                    self._refuse(name, "true or false", value)
                return value
            case "list of texts":
                if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                    self._refuse(name, "a list of texts", value)
                if len(value) > self.most or any(len(one) > 4096 for one in value):
                    self._refuse(name, f"at most {self.most:g} texts of 4,096 characters", value)
                return value
            case "object":
                if not isinstance(value, dict):
                    self._refuse(name, "an object", value)
                return value
            case _:
                return self._text(name, value)

    def _number(self, name: str, value: object) -> float:
        whole = self.kind == WHOLE
        wanted = f"a {self.kind} from {self.least:g} to {self.most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, wanted, value)
        if not self.least <= value <= self.most or (whole and value != int(value)):
            self._refuse(name, wanted, value)
        return int(value) if whole else float(value)

    def _text(self, name: str, value: object) -> Any:
        if not isinstance(value, str):
            self._refuse(name, "a text", value)
        if self.words and value not in self.words:
            self._refuse(name, f"one of {', '.join(self.words)}", value)
        if not self.words and not self.least <= len(value) <= self.most:
            wanted = f"a text of {self.least:g} to {self.most:,g} characters"
            self._refuse(name, wanted, f"{len(value):,} characters")
        if self.kind != BYTES:
            return value
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            self._refuse(name, "base64", value)

    def _refuse(self, name: str, wanted: str, value: object) -> NoReturn:
        message = f"{name} must be {wanted}, got {short(value)}"
        raise Refusal(self.code, message, {"field": name})


Fields = Mapping[str, Field]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refusal("invalid_json", "the body has a field twice")
    return found


def _constant(name: str) -> NoReturn:
    raise Refusal("invalid_json", f"the body has {name}, which is not JSON")


_decode = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant).decode


def read_body(data: bytes, fields: Fields) -> dict[str, Any]:
    """The fields of a body, all valid, with defaults; an empty body is an empty object."""
    if not data:
        return checked({}, fields)
    try:
        found = _decode(data.decode())
    except Refusal:
        raise
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refusal("invalid_json", f"the body is not JSON: {why}") from None
    if not isinstance(found, dict):
        raise Refusal("invalid_json", "the body must be a JSON object")
    return checked(found, fields)


def checked(given: Mapping[str, object], fields: Fields) -> dict[str, Any]:
    """The fields that were given, all valid, with the defaults of those that were not."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        field = fields.get(name)
        if field is None:
            known = ", ".join(fields) or "none"
            message = f"there is no field {short(name)} here: the fields are {known}"
            raise Refusal("unknown_field", message, {"field": short(name)[1:-1]})
        found[name] = field.read(name, value)
    for name, field in fields.items():
        if name not in found:
            if field.needed:
                raise Refusal("missing_field", f"{name} is needed", {"field": name})
            found[name] = field.default
    return found


def read_query(query: str, fields: Fields) -> dict[str, Any]:
    """The parameters of a query, all valid, with defaults; a list may be given in parts."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_PARAMETERS)
    except ValueError:
        message = f"a query has at most {_PARAMETERS} parameters"
        raise Refusal("invalid_query", message) from None
    given: dict[str, object] = {}
    for name, text in pairs:
        field = fields.get(name)
        if field is None:
            known = ", ".join(fields) or "none"
            message = f"there is no parameter {short(name)} here: the parameters are {known}"
            raise Refusal("invalid_query", message, {"field": short(name)[1:-1]})
        if field.kind == NAMES:
            listed = given.setdefault(name, [])
            assert isinstance(listed, list)
            listed.append(text)
        elif name in given:
            raise Refusal("invalid_query", f"{name} is given twice", {"field": name})
        else:
            given[name] = _value(field, text)
    try:
        return checked(given, fields)
    except Refusal as problem:
        raise Refusal("invalid_query", problem.message, problem.details) from None


def _value(field: Field, text: str) -> object:
    """A parameter as the value that a body would have; a text that is not valid stays one."""
    if field.kind == FLAG:
        return {"true": True, "false": False}.get(text, text)
    if field.kind not in (WHOLE, NUMBER) or len(text) > 30:
        return text
    try:
        return int(text) if text.isascii() and text.isdigit() else float(text)
    except ValueError:
        return text
