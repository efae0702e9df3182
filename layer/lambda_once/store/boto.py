"""The transport through boto3, which comes from the runtime or from the user.

boto3 takes several times longer to import than all the rest, so it is loaded at init, where Lambda
gives a function a full core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from ..import_faults import files_at_fault
from .boto_log import muted
from .transport import NO_TIME, Answer, Failed, Refused

# As many as the widest batch asks for side by side.
CONNECTIONS = 16


class Timeouts(NamedTuple):
    """How long one attempt may take: ms to connect, and ms to wait for the answer."""

    connect_ms: int
    read_ms: int


# The patient one is the rule. The others are for when little time is left.
_PATIENT = Timeouts(1_000, 2_000)
_TIERS = (_PATIENT, Timeouts(300, 500), Timeouts(75, 125), Timeouts(25, 50))

_METHODS = {
    "PutItem": "put_item",
    "GetItem": "get_item",
    "UpdateItem": "update_item",
    "DeleteItem": "delete_item",
}


class BotoTransport:
    """See the port. ``region`` is None for the environment's own; ``now_ms`` is epoch ms."""

    def __init__(self, region: str | None, now_ms: Callable[[], int]) -> None:
        self._region = region
        self._now_ms = now_ms
        self._session: Any = None
        self._clients: dict[Timeouts, Any] = {}
        self._lock = threading.Lock()

    def load(self) -> None:
        """Import boto3. A fault is left to the first request, which meets it again."""
        with suppress(Exception):
            _load()

    def prepare(self) -> None:
        """Make the clients, one for each tier of timeouts; faults as in ``load``."""
        with suppress(Exception), self._lock:
            for timeouts in _TIERS:
                self._make_client(timeouts)

    def send(
        self, operation: str, request: Mapping[str, Any], by_ms: int
    ) -> Answer | Refused | Failed:
        """See the port."""
        try:
            client = self._client(by_ms)
        except Exception as fault:  # noqa: BLE001  boto3 is the user's: it may raise anything
            return _no_client(fault)
        return NO_TIME if client is None else self._attempt(client, operation, request)

    def renew(self) -> None:
        """A client keeps the credentials that it found, or did not find: begin anew."""
        with self._lock:
            self._session = None
            self._clients.clear()

    def _attempt(
        self, client: Any, operation: str, request: Mapping[str, Any]
    ) -> Answer | Refused | Failed:
        from botocore.exceptions import ClientError

        try:
            with muted():
                method = getattr(client, _METHODS[operation])
                return Answer(method(**_known(client, operation, request)))
        except ClientError as fault:
            return _refused(fault.response)
        except Exception as fault:  # noqa: BLE001  boto3 is the user's: it may raise anything
            failure = _failed(fault)
            if not failure.transient:
                self.renew()
            return failure

    def _client(self, by_ms: int) -> Any | None:
        """A client that comes back by ``by_ms``; None if there is no time left.

        Making one can take long where init could not, so the time is looked at again after it.
        """
        with self._lock:
            while (timeouts := self._timeouts(by_ms)) is not None:
                if timeouts in self._clients:
                    return self._clients[timeouts]
                self._make_client(timeouts)
        return None

    def _timeouts(self, by_ms: int) -> Timeouts | None:
        """The most patient timeouts that cannot pass ``by_ms``."""
        left_ms = by_ms - self._now_ms()
        return next((t for t in _TIERS if t.connect_ms + t.read_ms <= left_ms), None)

    def _make_client(self, timeouts: Timeouts) -> None:
        """Make the client with these timeouts, if there is none yet. Needs the lock."""
        if timeouts not in self._clients:
            self._session = self._session or _new_session(self._region)
            self._clients[timeouts] = _new_client(self._session, timeouts)


def _load() -> None:
    with muted():
        for module in ("boto3.session", "botocore.config", "botocore.exceptions"):
            import_module(module)


def _new_session(region: str | None) -> Any:
    import boto3

    with muted():
        return boto3.session.Session(region_name=region or os.environ.get("AWS_REGION"))


def _new_client(session: Any, timeouts: Timeouts) -> Any:
    from botocore.config import Config

    config = Config(
        connect_timeout=timeouts.connect_ms / 1000,
        read_timeout=timeouts.read_ms / 1000,
        # Repeating is ours: it knows the deadline and what a repeated write means.
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=CONNECTIONS,
        user_agent_extra="lambda-once",
    )
    with muted():
        return session.client("dynamodb", config=config)


def _known(client: Any, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request as an older botocore takes it: it returns no old item, which is then read."""
    optional = "ReturnValuesOnConditionCheckFailure"  # botocore 1.29.165, June 2023
    members = client.meta.service_model.operation_model(operation).input_shape.members
    if optional in members:
        return request
    return {name: value for name, value in request.items() if name != optional}


def _refused(response: Mapping[str, Any]) -> Refused:
    code = str(response.get("Error", {}).get("Code") or "Unknown")
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return Refused(code, status, response.get("Item"))


def _no_client(fault: Exception) -> Failed:
    """boto3 is the user's or the runtime's: say which file made it fail."""
    detail = f"no DynamoDB client could be made from boto3: {fault}{files_at_fault(fault)}"
    return Failed(type(fault).__name__, detail, maybe_applied=False, transient=False)


def _failed(fault: Exception) -> Failed:
    """What an exception in the place of an answer means: whether the request can have arrived."""
    from botocore import exceptions

    code, detail = type(fault).__name__, str(fault)
    if isinstance(fault, exceptions.SSLError):
        return Failed(code, detail, True)  # in the handshake, or in the middle of it all
    if isinstance(fault, exceptions.ConnectionError):
        return Failed(code, detail, False)  # there was no connection
    if isinstance(fault, exceptions.BotoCoreError) and not isinstance(
        fault, exceptions.HTTPClientError
    ):
        return Failed(code, detail, False, transient=False)  # no credentials: never sent
    # The connection broke, or the answer could not even be parsed.
    return Failed(code, detail, True)
