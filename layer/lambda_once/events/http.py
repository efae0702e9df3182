"""HTTP: who asks for what under which key, and which responses are failures.

Whether an event is HTTP is decided by its source, never by what a response looks like. Rules:
draft-ietf-httpapi-idempotency-key-header-07 (the header), RFC 9110 (statuses), RFC 8941 (quoted
strings).
"""

from __future__ import annotations

from typing import Any

from ..errors import IdempotencyError, IdempotencyKeyMissingError
from ..keys.canonical import is_missing
from .base import DAY_S, GuardedByExpression, Source
from .caller import header_values, principal
from .problem import Shape, no_content, problem, with_header
from .reading import at

# Source: RFC 9110, section 9.2.1.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

KEY_HEADER = "idempotency-key"
MAX_KEY_LENGTH = 255

# Responses that a later, equal request need not get again. All other statuses are kept.
_TRANSIENT_STATUSES = frozenset({401, 403, 408, 425, 429})


class Http(Source):
    """A gateway that turns requests into events.

    infers_response  makes a 200 of a response without statusCode, where others make an error
    wants_reason     takes the status also as text, in ``statusDescription``
    """

    title = "API Gateway v1 and v2, Function URL, ALB, VPC Lattice"
    identity_text = (
        "API or target group + domain + method + path + principal + `Idempotency-Key` header;"
        " without the header, and for GET, HEAD, OPTIONS and TRACE, run unprotected"
    )
    retention_s = DAY_S
    infers_response = False
    wants_reason = False

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(at(event, "httpMethod"))

    def resource(self, event: Any) -> list[object]:
        """What tells the requested resource from those of other APIs, domains and paths."""
        raise NotImplementedError

    def guarded(self, event: Any, has_expression: bool) -> bool:
        """Not where repeating does no harm by definition, nor where the client wants no key."""
        if self.method(event).upper() in SAFE_METHODS:
            return False
        return has_expression or has_key(event)

    def identity(self, event: Any) -> object | None:
        """The client's key, which counts for one caller and one resource only."""
        caller, key = known_principal(event), key_in_header(event)
        return [self.method(event).upper(), self.resource(event), caller, key]

    def is_failure(self, response: object) -> bool:
        """By the status."""
        return is_failure(response, self.infers_response)

    def refusal(self, event: Any, fault: IdempotencyError, *, by_source: bool) -> object:
        """Problem details, with the status that the fault has in HTTP."""
        return problem(self._shape(event), fault, by_header=by_source)

    def replayed(
        self, event: Any, response: object, *, omitted: bool, header: str | None
    ) -> object:
        """204 where nothing was stored; with the configured header."""
        if not omitted and not header:
            return response
        shape = self._shape(event)
        if omitted:
            response = no_content(shape)
        return with_header(shape, response, header) if header else response

    def _shape(self, event: Any) -> Shape:
        """A load balancer reads only the kind of headers that it sends."""
        lists = self.wants_reason and isinstance(event.get("multiValueHeaders"), dict)
        return Shape(self.wants_reason, lists)


class WebSocket(GuardedByExpression):
    """API Gateway's WebSocket APIs: nothing is delivered twice, and all ids are new each time."""

    name = "websocket"
    title = "API Gateway WebSocket"

    def matches(self, event: Any) -> bool:
        """By the connection's id."""
        return at(event, "requestContext", "connectionId") is not None


class ApiGatewayV1(Http):
    """REST APIs, and HTTP APIs with payload format 1.0."""

    name = "apigateway-v1"

    def matches(self, event: Any) -> bool:
        """By the method and the context; load balancers have them too, but another context."""
        context = at(event, "requestContext")
        return isinstance(context, dict) and "httpMethod" in event and "elb" not in context

    def resource(self, event: Any) -> list[object]:
        """The API, its stage and domain, and the path."""
        return _api(event["requestContext"], event.get("path"))


class ApiGatewayV2(Http):
    """HTTP APIs with payload format 2.0."""

    name = "apigateway-v2"
    infers_response = True

    def matches(self, event: Any) -> bool:
        """By the context's ``http``."""
        return isinstance(at(event, "requestContext", "http"), dict)

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(at(event, "requestContext", "http", "method"))

    def resource(self, event: Any) -> list[object]:
        """The API, its stage and domain, and the path."""
        return _api(event["requestContext"], event.get("rawPath"))


class FunctionUrl(ApiGatewayV2):
    """Function URLs: payload format 2.0 under a domain of their own."""

    name = "function-url"

    def matches(self, event: Any) -> bool:
        """By the domain."""
        domain = at(event, "requestContext", "domainName")
        return isinstance(domain, str) and ".lambda-url." in domain and super().matches(event)


class LoadBalancer(Http):
    """Application load balancers, with single or multiple header values."""

    name = "alb"
    wants_reason = True

    def matches(self, event: Any) -> bool:
        """By the context's ``elb``."""
        return isinstance(at(event, "requestContext", "elb"), dict)

    def resource(self, event: Any) -> list[object]:
        """The target group, the host and the path."""
        group = at(event, "requestContext", "elb", "targetGroupArn")
        return [group, _host(event), event.get("path")]


class LatticeV2(Http):
    """VPC Lattice, event structure 2.0."""

    name = "lattice-v2"
    wants_reason = True

    def matches(self, event: Any) -> bool:
        """By the context's service."""
        return at(event, "requestContext", "serviceArn") is not None

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(event.get("method"))

    def resource(self, event: Any) -> list[object]:
        """The service, the target group, the host and the path without its query."""
        context = event["requestContext"]
        path = str(event.get("path")).partition("?")[0]
        return [context["serviceArn"], context.get("targetGroupArn"), _host(event), path]


class LatticeV1(Http):
    """VPC Lattice, event structure 1.0."""

    name = "lattice-v1"
    wants_reason = True

    def matches(self, event: Any) -> bool:
        """By its own spelling of the path."""
        return isinstance(event, dict) and "raw_path" in event and "method" in event

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(event["method"])

    def resource(self, event: Any) -> list[object]:
        """The host and the path without its query; the event does not name its service."""
        return [_host(event), str(event["raw_path"]).partition("?")[0]]


def _api(context: dict[str, Any], path: object) -> list[object]:
    """The domain too: one API may serve each of its customers under another domain."""
    return [context.get("apiId"), context.get("stage"), context.get("domainName"), path]


def _host(event: Any) -> str | None:
    hosts = header_values(event, "host")
    return hosts[0].lower() if hosts else None


# ---- the request


def has_key(event: Any) -> bool:
    """Whether the client sent an Idempotency-Key, well formed or not."""
    return bool(header_values(event, KEY_HEADER))


def key_in_header(event: Any) -> str:
    """The client's key; raises IdempotencyKeyMissingError if it is malformed or absent.

    A quoted string and the same text without quotes are one key.
    """
    values = header_values(event, KEY_HEADER)
    if len(values) != 1:
        raise IdempotencyKeyMissingError("the Idempotency-Key header must be sent once")
    text = values[0].strip(" \t")
    key = _unquote(text[1:]) if text.startswith('"') else text
    if not key:
        raise IdempotencyKeyMissingError("the Idempotency-Key header is empty")
    if len(key) > MAX_KEY_LENGTH or not (key.isascii() and key.isprintable()):
        raise IdempotencyKeyMissingError(
            f"the Idempotency-Key header holds more than {MAX_KEY_LENGTH} characters,"
            " or others than printable ASCII"
        )
    return key


def _unquote(text: str) -> str:
    """The content of a quoted string, from after its first quote.

    Gateways that join several values with commas give more text after the last quote.
    """
    content: list[str] = []
    rest = iter(text)
    for char in rest:
        if char == '"':
            if next(rest, None) is None:
                return "".join(content)
            break
        escaped = next(rest, None) if char == "\\" else char
        if escaped is None or (char == "\\" and escaped not in ('"', "\\")):
            break
        content.append(escaped)
    raise IdempotencyKeyMissingError("the Idempotency-Key header is not one well-formed string")


def known_principal(event: Any) -> list[object] | None:
    """As ``principal``; raises IdempotencyKeyMissingError where callers cannot be told apart."""
    found = principal(event)
    if found is not None and is_missing(found):
        raise IdempotencyKeyMissingError(
            "the request carries credentials, and no authorizer says whose they are:"
            " IDEMPOTENCY_KEY must select what identifies the caller"
        )
    return found


def is_failure(response: object, infers_response: bool) -> bool:
    """Whether the client is told of a failure after which an equal request should run again.

    ``infers_response``: the gateway makes a 200 of a response without a status; others make a 502.
    """
    fields = _fields(response)
    if fields is None or "statusCode" not in fields:
        return not infers_response
    try:
        status = int(fields["statusCode"])
    except (TypeError, ValueError, OverflowError):
        return True  # the gateway makes a 500 or 502 of it
    return not 100 <= status < 500 or status in _TRANSIENT_STATUSES


def _fields(response: object) -> dict[str, Any] | None:
    """The members of a response that the runtime sends as an object."""
    if isinstance(response, dict):
        return response
    as_dict = getattr(response, "_asdict", None)
    fields = as_dict() if callable(as_dict) else None
    return fields if isinstance(fields, dict) else None


SOURCES = (
    WebSocket(),
    FunctionUrl(),
    ApiGatewayV2(),
    LoadBalancer(),
    LatticeV2(),
    ApiGatewayV1(),
    LatticeV1(),
)
