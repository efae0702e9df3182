"""The port of one attempt: one request to DynamoDB, and what came of it.

A transport sends a request once. It never repeats one and does not know what a repeated write
means: that is decided above it, in ``dynamodb``. Requests and answers have the shape of DynamoDB's
own JSON, but for binary values, which are ``bytes`` and not base64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Answer(NamedTuple):
    """The service did what was asked. ``members`` is the answer's JSON object."""

    members: Mapping[str, Any]


class Refused(NamedTuple):
    """The service answered with an error.

    ``code`` is the bare name of the error, such as ``ConditionalCheckFailedException``, and
    ``Unknown`` where the answer names none. ``status`` is HTTP's. ``item`` is the old item of a
    failed condition, where the service returned it. The service's message is left out on purpose:
    that of a wrong signature holds the session token.
    """

    code: str
    status: int
    item: Mapping[str, Any] | None = None


class Failed(NamedTuple):
    """No answer came that can be read.

    ``code`` names what happened, ``detail`` says it in words that hold no secret.
    ``maybe_applied``: the request may have reached the service and taken effect.
    ``transient``: the same request may succeed if it is sent again.
    """

    code: str
    detail: str
    maybe_applied: bool
    transient: bool = True


# No request was made, as there is no time left for one.
NO_TIME = Failed("DeadlineExceeded", "no time left for a request", False, False)


class Transport(Protocol):
    """Sends requests to one Region; safe to share between threads."""

    def load(self) -> None:
        """Import what is heavy. A snapshot may be taken after this: no client, socket, secret."""

    def prepare(self) -> None:
        """Make what requests need (TLS context, client, credentials), so that the first is quick.

        Called at init, and under SnapStart after the restore. Raises nothing: what fails here fails
        again, and is told, at the first request.
        """

    def send(
        self, operation: str, request: Mapping[str, Any], by_ms: int
    ) -> Answer | Refused | Failed:
        """Send one request and come back by ``by_ms`` (epoch ms), connecting included.

        ``operation`` is DynamoDB's name, such as ``PutItem``. ``request`` is complete, table and
        all. Raises nothing that is a fault of the network, the service or the environment.
        """

    def renew(self) -> None:
        """Drop credentials and connections: the next request reads the credentials anew."""
