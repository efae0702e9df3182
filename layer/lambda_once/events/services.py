"""Services that invoke the function asynchronously, each with ids of its own."""

from __future__ import annotations

import json
from typing import Any

from .base import Asynchronous
from .reading import at, first, given


class CloudWatchLogs(Asynchronous):
    """Log subscriptions."""

    name = "logs"
    title = "CloudWatch Logs"
    identity_text = "account + log group + log stream + filters + ids of the log events"
    missing = "its log data cannot be read"

    def matches(self, event: Any) -> bool:
        """By its packed data."""
        return isinstance(at(event, "awslogs", "data"), str)

    def identity(self, event: Any) -> object | None:
        """From inside the packed data: packing the same again can give other bytes."""
        batch = _unpack(event["awslogs"]["data"])
        events = at(batch, "logEvents")
        if not isinstance(events, list) or not events:
            return None
        place = (at(batch, "owner"), at(batch, "logGroup"), at(batch, "logStream"))
        known = given(*place, *(at(each, "id") for each in events))
        return known and [known, at(batch, "subscriptionFilters")]


class Ses(Asynchronous):
    """Mail received by SES."""

    name = "ses"
    title = "SES"
    identity_text = "SES's `messageId` + the recipients of the rule"

    def matches(self, event: Any) -> bool:
        """By the first record."""
        return first(event).get("eventSource") == "aws:ses"

    def identity(self, event: Any) -> object | None:
        """With the recipients, as several rules may invoke the function for one mail."""
        mail = at(first(event), "ses")
        known = given(at(mail, "mail", "messageId"))
        return known and [*known, at(mail, "receipt", "recipients")]


class CodeCommit(Asynchronous):
    """Triggers of CodeCommit."""

    name = "codecommit"
    title = "CodeCommit"
    identity_text = "repository ARN + `eventId` + part + trigger"

    def matches(self, event: Any) -> bool:
        """By the first record."""
        return first(event).get("eventSource") == "aws:codecommit"

    def identity(self, event: Any) -> object | None:
        """An event may come in several parts, and start several triggers."""
        record = first(event)
        known = given(record.get("eventSourceARN"), record.get("eventId"))
        return known and [*known, record.get("eventPartNumber"), record.get("eventTriggerName")]


class CustomResource(Asynchronous):
    """Custom resources of CloudFormation."""

    name = "cloudformation"
    title = "CloudFormation custom resources"
    identity_text = "stack + logical resource + `RequestId`"

    def matches(self, event: Any) -> bool:
        """By what every request has."""
        return isinstance(event, dict) and "StackId" in event and "ResponseURL" in event

    def identity(self, event: Any) -> object | None:
        """The signed URL for the answer is left out."""
        return given(event["StackId"], event.get("LogicalResourceId"), event.get("RequestId"))


class SecretRotation(Asynchronous):
    """Rotations of Secrets Manager."""

    name = "secretsmanager"
    title = "Secrets Manager rotation"
    identity_text = "secret + version (`ClientRequestToken`) + step"

    def matches(self, event: Any) -> bool:
        """By what every step has."""
        return isinstance(event, dict) and "SecretId" in event and "ClientRequestToken" in event

    def identity(self, event: Any) -> object | None:
        """The token is the new version's id and no secret."""
        return given(event["SecretId"], event["ClientRequestToken"], event.get("Step"))


class CodePipeline(Asynchronous):
    """Jobs of CodePipeline."""

    name = "codepipeline"
    title = "CodePipeline"
    identity_text = "account + job id + continuation"

    def matches(self, event: Any) -> bool:
        """By the job."""
        return isinstance(at(event, "CodePipeline.job"), dict)

    def identity(self, event: Any) -> object | None:
        """The credentials for the artifacts are left out."""
        job = event["CodePipeline.job"]
        known = given(job.get("accountId"), job.get("id"))
        return known and [*known, at(job, "data", "continuationToken")]


class ConfigRule(Asynchronous):
    """Custom rules of AWS Config."""

    name = "config"
    title = "AWS Config rules"
    identity_text = "rule + the invoking event"

    def matches(self, event: Any) -> bool:
        """By the rule and what it is asked about."""
        return isinstance(event, dict) and "configRuleArn" in event and "invokingEvent" in event

    def identity(self, event: Any) -> object | None:
        """The token for the answer is left out."""
        return given(event["configRuleArn"], event["invokingEvent"])


class WorkMail(Asynchronous):
    """Mail passing through WorkMail."""

    name = "workmail"
    title = "WorkMail"
    identity_text = "`messageId` + direction + recipients"

    def matches(self, event: Any) -> bool:
        """By what every message has."""
        return isinstance(event, dict) and "flowDirection" in event and "summaryVersion" in event

    def identity(self, event: Any) -> object | None:
        """With the recipients, as a mail to several is handled for each group of them."""
        known = given(event.get("messageId"), event["flowDirection"])
        return known and [*known, at(event, "envelope", "recipients")]


class S3Batch(Asynchronous):
    """S3 Batch Operations."""

    name = "s3-batch"
    title = "S3 Batch Operations"
    identity_text = "job + task"

    def matches(self, event: Any) -> bool:
        """By the first task."""
        return "taskId" in first(event, "tasks") and "job" in event

    def identity(self, event: Any) -> object | None:
        """The invocation's id is left out."""
        return given(at(event, "job", "id"), *(at(task, "taskId") for task in event["tasks"]))

    def is_failure(self, response: object) -> bool:
        """A task that failed for now is given to the function again."""
        found = at(response, "results")
        codes = [at(result, "resultCode") for result in found] if isinstance(found, list) else []
        return "TemporaryFailure" in codes


class Alexa(Asynchronous):
    """Alexa's skills: custom ones, and those for smart homes."""

    name = "alexa"
    title = "Alexa skills"
    identity_text = "skill + request id; of smart home skills the message id"

    def matches(self, event: Any) -> bool:
        """By the ids."""
        return self.identity(event) is not None

    def identity(self, event: Any) -> object | None:
        """The user's access tokens are left out."""
        return self._message(event) or given(self._skill(event), at(event, "request", "requestId"))

    def _message(self, event: Any) -> object | None:
        header = at(event, "directive", "header") or at(event, "header")
        namespace = at(header, "namespace")
        is_home = isinstance(namespace, str) and namespace.startswith("Alexa")
        return given(namespace, at(header, "messageId")) if is_home else None

    def _skill(self, event: Any) -> object | None:
        in_session: object = at(event, "session", "application", "applicationId")
        return in_session or at(event, "context", "System", "application", "applicationId")


def _unpack(data: str) -> object | None:
    """What CloudWatch Logs packed: JSON, gzip, base64. None if it is anything else."""
    import base64
    import zlib

    try:
        unpacked: object = json.loads(zlib.decompress(base64.b64decode(data), wbits=31))
    except (ValueError, zlib.error, RecursionError):
        return None
    return unpacked


SOURCES = (
    CloudWatchLogs(),
    Ses(),
    CodeCommit(),
    CustomResource(),
    SecretRotation(),
    CodePipeline(),
    ConfigRule(),
    WorkMail(),
    S3Batch(),
    Alexa(),
)
