"""Every request to AWS goes through here and is printed; a dry run makes the reads alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

# A client for a service in a Region.
Clients = Callable[[str, str], Any]

_NOT_THERE = {"ResourceNotFoundException", "ParameterNotFound", "NotFoundException", "404"}
_LONGEST_SHOWN = 200


class PublishError(Exception):
    """Something cannot be published; the message says what to do."""


class Calls:
    """Makes requests, and prints each as `Region service operation {parameters}`."""

    def __init__(self, clients: Clients, say: Callable[[str], None], *, dry_run: bool) -> None:
        self._clients = clients
        self._say = say
        self.dry_run = dry_run

    def note(self, text: str) -> None:
        """Tell of something that is no request."""
        self._say(text)

    def read(self, region: str, service: str, operation: str, **parameters: Any) -> Any:
        """The answer; None if what is asked for is not there. Raises ClientError for the rest."""
        self._print("read", region, service, operation, parameters)
        try:
            return self._make(region, service, operation, parameters)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise

    def write(self, region: str, service: str, operation: str, **parameters: Any) -> Any:
        """The answer; None in a dry run, which only prints. Raises ClientError."""
        self._print("would" if self.dry_run else "write", region, service, operation, parameters)
        return None if self.dry_run else self._make(region, service, operation, parameters)

    def _make(self, region: str, service: str, operation: str, parameters: dict[str, Any]) -> Any:
        return getattr(self._clients(service, region), operation)(**parameters)

    def _print(
        self, what: str, region: str, service: str, operation: str, parameters: dict[str, Any]
    ) -> None:
        shown = json.dumps(_short(parameters))
        self._say(f"{what:5} {region} {service} {operation.replace('_', '-')} {shown}")


def _short(value: Any) -> Any:
    """Parameters without what would fill the screen."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"<{len(value):,} characters>"
    return value
