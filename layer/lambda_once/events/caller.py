"""Headers, and who calls, in every shape that an HTTP event has."""

from __future__ import annotations

from typing import Any

# The members of a Lambda authorizer's context that may say who calls. All that are there count, as
# some authorizers give the same principalId to everyone.
_NAMES_OF_CALLERS = ("principalId", "sub", "userId", "user_id", "username")
# What a VPC Lattice identity says of who calls, in structure 2.0 (the header of 1.0 capitalises).
_LATTICE_NAMES = ("principal", "sessionname", "x509subjectcn", "x509sanuri", "x509sandns")


def header_values(event: Any, name: str) -> list[str]:
    """The values of a header, in any case and any event shape; empty if it was not sent."""
    wanted = name.lower()
    for headers in _header_objects(event):
        found = [value for each, value in headers.items() if each.lower() == wanted]
        values = [
            str(one)
            for value in found
            for one in (value if isinstance(value, list) else [value])
            if one is not None
        ]
        if values:
            return values
    return []


def _header_objects(event: Any) -> list[dict[str, Any]]:
    """Those with all values first; AppSync has its headers one level down."""
    if not isinstance(event, dict):
        return []
    request = event.get("request")
    inner = request.get("headers") if isinstance(request, dict) else None
    found = (event.get("multiValueHeaders"), event.get("headers"), inner)
    return [headers for headers in found if isinstance(headers, dict)]


def principal(event: Any) -> list[object] | None:
    """Who calls, as the gateway found out: a list of what is known; None if nobody says.

    Never a token, nor the Authorization header. Where credentials were sent and what is known does
    not tell callers apart, a member is null: by the rules for keys that is a missing key. Without
    it, one caller could be given another's response.
    """
    if not isinstance(event, dict):
        return None
    context = _object(event.get("requestContext"))
    callers = [
        *_by_identity(_object(context.get("identity"))),
        *_by_identity(_object(event.get("identity"))),  # AppSync
        *_by_authorizer(context.get("authorizer")),
        *_by_trusted_headers(event, context),
    ]
    if not callers and header_values(event, "authorization"):
        callers = [["authorization", None]]
    return [*callers, *_clients(event, context)] or None


def _by_identity(identity: dict[str, Any]) -> list[list[object]]:
    """From API Gateway v1 (IAM), VPC Lattice 2.0 (IAM) and AppSync (all)."""
    found = _by_iam(identity)
    if identity.get("sub"):
        found.append(["jwt", identity.get("issuer"), identity["sub"]])
    if "resolverContext" in identity:
        found.append(["authorizer", _named(identity["resolverContext"])])
    return [*found, *_by_lattice(identity)]


def _by_iam(identity: dict[str, Any]) -> list[list[object]]:
    """All users of a Cognito identity pool share one role, so its own id counts too."""
    cognito = _object(identity.get("cognitoIdentity")).get("identityId")
    found = {
        "cognito": identity.get("cognitoIdentityId") or cognito,
        "iam": identity.get("userArn") or identity.get("userId") or identity.get("user"),
    }
    return [[kind, value] for kind, value in found.items() if value]


def _by_authorizer(authorizer: object) -> list[list[object]]:
    """From API Gateway v1 (``claims``, or a Lambda authorizer's members) and v2."""
    if not isinstance(authorizer, dict) or not authorizer:
        return []
    jwt = _object(authorizer.get("jwt"))
    claims = authorizer.get("claims") or jwt.get("claims")
    if isinstance(claims, dict):
        subject = claims.get("sub") or claims.get("client_id") or claims.get("azp")
        return [["jwt", claims.get("iss"), subject]]
    if "iam" in authorizer:
        return _by_iam(_object(authorizer["iam"])) or [["iam", None]]
    return [["authorizer", _named(authorizer.get("lambda", authorizer))]]


def _named(context: object) -> dict[str, object] | None:
    """The members of an authorizer's context that say who calls; None if there are none."""
    members = _object(context)
    found = {name: members[name] for name in _NAMES_OF_CALLERS if members.get(name)}
    return {**found, "iss": members.get("iss") or "-"} if found else None


def _by_trusted_headers(event: dict[str, Any], context: dict[str, Any]) -> list[list[object]]:
    """Headers that the gateway sets itself; from any other they are the client's own words."""
    if "elb" in context:
        return [["oidc", subject] for subject in header_values(event, "x-amzn-oidc-identity")]
    if "raw_path" in event:
        return [
            caller
            for text in header_values(event, "x-amzn-lattice-identity")
            for caller in _by_lattice(_members(text))
        ]
    return []


def _members(text: str) -> dict[str, Any]:
    """VPC Lattice 1.0 says ``Principal=...; SessionName=...; Type=AWS_IAM``."""
    return dict(part.strip().partition("=")[::2] for part in text.split(";"))


def _by_lattice(identity: dict[str, Any]) -> list[list[object]]:
    lower = {name.lower(): value for name, value in identity.items()}
    if not lower.get("principal"):
        return []
    return [["lattice", *(lower.get(name) or "-" for name in _LATTICE_NAMES)]]


def _clients(event: dict[str, Any], context: dict[str, Any]) -> list[list[object]]:
    """Which program calls: API keys and client certificates."""
    identity = _object(context.get("identity"))
    found: list[list[object]] = []
    if identity.get("apiKeyId"):
        found.append(["api_key", identity["apiKeyId"]])
    authentication = _object(context.get("authentication"))
    certificate = _object(identity.get("clientCert") or authentication.get("clientCert"))
    if certificate.get("subjectDN"):
        found.append(["mtls", certificate.get("issuerDN") or "-", certificate["subjectDN"]])
    if "elb" in context:
        subjects = header_values(event, "x-amzn-mtls-clientcert-subject")
        issuers = header_values(event, "x-amzn-mtls-clientcert-issuer")
        found += [["mtls", *(issuers or ["-"]), *subjects]] if subjects else []
    return found


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
