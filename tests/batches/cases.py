"""The table of batch cases: data for the tests, and for the README."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.batches.world import World, event_of, identifier, letter_of, letters_in, world

Handler = Callable[[Any, Any], Any]


class Case(NamedTuple):
    """One line of the table.

    ``before`` has one word a record (new, done, running, throttled) for the records a, b, c...;
    ``handler`` names what the user's function does (see ``handler_of``). ``seen`` are the letters
    of each call, ``answer`` is ``success``, ``raises X`` or ``reports a b``, ``after`` as ``before``.
    """

    source: str
    batch: str
    partial: str
    before: str
    handler: str
    seen: str
    answer: str
    after: str
    in_readme: bool = False

    @property
    def letters(self) -> str:
        return "abcdefgh"[: len(self.before.split())]


def _c(*fields: str, readme: bool = False) -> Case:
    source, batch, partial, before, handler, seen, answer, after = fields
    return Case(source, batch, partial, before, handler, seen, answer, after, readme)


CASES = (
    # nothing in the way
    _c("SQS", "records", "auto", "new new new", "returns", "abc", "success", "done done done"),
    _c("SQS", "records", "auto", "done done done", "returns", "", "success", "done done done", readme=True),
    _c("SQS", "records", "auto", "new done new", "returns", "ac", "success", "done done done", readme=True),
    # the handler fails
    _c("SQS", "records", "auto", "new done new", "raises", "ac", "raises ValueError", "new done new", readme=True),
    _c("SQS", "records", "report", "new new", "raises", "ab", "raises ValueError", "new new"),
    _c("SQS", "records", "auto", "new new new", "reports b", "abc", "reports b", "done new done", readme=True),
    _c("SQS", "records", "auto", "new new new", "reports none", "abc", "success", "done done done"),
    _c("SQS", "records", "auto", "new new new", "reports null", "abc", "success", "done done done"),
    _c("SQS", "records", "auto", "new new", "reports unknown", "ab", "passes", "new new", readme=True),
    _c("SQS", "records", "auto", "new new", "reports empty", "ab", "passes", "new new"),
    _c("SQS", "records", "auto", "new new", "reports garbage", "ab", "passes", "new new"),
    _c("SQS", "records", "auto", "running new", "reports unknown", "b", "passes", "running new"),
    _c("SQS", "records", "raise", "new new", "reports unknown", "ab", "raises IdempotencyBatchError", "new new"),
    _c("SQS", "records", "report", "new new", "reports unknown", "ab", "passes", "new new"),
    _c("SQS", "records", "raise", "new new new", "reports b", "abc", "raises IdempotencyBatchError", "done new done"),
    _c("SQS", "records", "auto", "new new", "returns a set", "ab", "passes", "new new"),
    # a record is blocked
    _c("SQS", "records", "auto", "new running new", "returns", "ac", "raises IdempotencyBatchError", "done running done", readme=True),
    _c("SQS", "records", "report", "new running new", "returns", "ac", "reports b", "done running done", readme=True),
    _c("SQS", "records", "auto", "new running new", "reports c", "ac", "reports b c", "done running new", readme=True),
    _c("SQS", "records", "auto", "new running new", "reports none", "ac", "reports b", "done running done"),
    _c("SQS", "records", "raise", "new running new", "reports none", "ac", "raises IdempotencyBatchError", "done running done"),
    _c("SQS", "records", "auto", "new running new", "raises", "ac", "raises ValueError", "new running new"),
    _c("SQS", "records", "auto", "running running", "returns", "", "raises IdempotencyBatchError", "running running"),
    _c("SQS", "records", "report", "running done", "returns", "", "reports a", "running done"),
    _c("SQS", "records", "auto", "running", "returns", "", "raises IdempotencyInProgressError", "running"),
    # a claim fails
    _c("SQS", "records", "auto", "new throttled new", "returns", "ac", "raises IdempotencyBatchError", "done new done", readme=True),
    _c("SQS", "records", "report", "new throttled new", "returns", "ac", "reports b", "done new done"),
    _c("SQS", "records", "auto", "throttled", "returns", "", "raises IdempotencyStoreError", "new"),
    # one call a record
    _c("SQS", "each", "auto", "new done new", "returns", "a c", "success", "done done done"),
    _c("SQS", "each", "auto", "new new new", "raises on b", "a b c", "raises ValueError", "done new done", readme=True),
    _c("SQS", "each", "report", "new new new", "raises on b", "a b c", "reports b", "done new done", readme=True),
    _c("SQS", "each", "raise", "new new new", "raises on b", "a b c", "raises ValueError", "done new done"),
    _c("SQS", "each", "report", "new running new", "raises on c", "a c", "reports b c", "done running new"),
    _c("SQS", "each", "auto", "new running new", "returns", "a c", "raises IdempotencyBatchError", "done running done"),
    _c("SQS", "each", "auto", "new new new", "exits on b", "a b", "raises SystemExit", "done new new"),
    # the whole event is the unit
    _c("SQS", "whole", "auto", "new new", "returns", "ab", "success", "new new"),
    # FIFO: capital letters would be another group; here all are of one
    _c("SQS FIFO", "records", "report", "new running new", "returns", "a", "reports b c", "done running new", readme=True),
    _c("SQS FIFO", "records", "auto", "new running new", "returns", "a", "raises IdempotencyBatchError", "done running new"),
    _c("SQS FIFO", "records", "auto", "new new new", "reports b c", "abc", "reports b c", "done new new"),
    _c("SQS FIFO", "each", "report", "new new new", "raises on b", "a b", "reports b c", "done new new", readme=True),
    _c("SQS FIFO", "records", "report", "new throttled new", "returns", "a", "reports b c", "done new new"),
    # streams: the lowest failure is the checkpoint
    _c("Kinesis", "records", "report", "new running new", "returns", "a", "reports b", "done running new", readme=True),
    _c("Kinesis", "records", "auto", "new running new", "returns", "a", "raises IdempotencyBatchError", "done running new"),
    _c("Kinesis", "records", "auto", "done new new", "returns", "bc", "success", "done done done", readme=True),
    _c("Kinesis", "records", "auto", "new new new", "reports b", "abc", "reports b", "done new new", readme=True),
    _c("Kinesis", "each", "report", "new new new", "raises on b", "a b", "reports b", "done new new"),
    _c("DynamoDB Streams", "records", "auto", "new done new", "returns", "ac", "success", "done done done"),
    _c("DynamoDB Streams", "records", "report", "running new new", "returns", "", "reports a", "running new new"),
    # Kafka
    _c("Kafka", "records", "auto", "new done new", "returns", "ac", "success", "done done done"),
    _c("Kafka", "records", "report", "new running new", "returns", "a", "reports b", "done running new", readme=True),
    _c("Kafka", "records", "auto", "new new new", "reports b", "abc", "reports b", "done new new"),
)  # fmt: skip


def handler_of(case: Case) -> Handler:
    """The user's function of a case."""
    what, _, which = case.handler.partition(" ")
    if what == "returns":
        return lambda event, context: {1} if which else None
    if what == "raises":
        return _raises(ValueError("no stock"), which.removeprefix("on "))
    if what == "exits":
        return _raises(SystemExit(1), which.removeprefix("on "))
    return _reports(case.source, which)


def _raises(fault: BaseException, letter: str) -> Handler:
    def handler(event: Any, context: Any) -> None:
        if not letter or letter in letters_in(event):
            raise fault

    return handler


def _reports(source: str, which: str) -> Handler:
    odd: dict[str, object] = {
        "none": [],
        "null": None,
        "unknown": [{"itemIdentifier": "nobody"}],
        "empty": [{"itemIdentifier": ""}],
        "garbage": "b",
    }
    failures = odd.get(which) if which in odd else _items(source, which.split())
    return lambda event, context: {"batchItemFailures": failures}


def _items(source: str, letters: list[str]) -> list[dict[str, object]]:
    return [{"itemIdentifier": identifier(source, letter)} for letter in letters]


class Run(NamedTuple):
    """What came of a case, in the words of ``Case``, and the event and answer themselves."""

    seen: str
    answer: str
    after: str
    event: Any
    raw_answer: Any
    world: World


def run(case: Case) -> Run:
    """Play a case on a memory store."""
    here = world(case.source, batch=case.batch, partial_batch=case.partial)
    event = event_of(case.source, case.letters)
    for letter, state in zip(case.letters, case.before.split(), strict=True):
        here.put(event, letter, state)
    answer = here.invoke(handler_of(case), event)
    after = " ".join(here.state(event, letter) for letter in case.letters)
    return Run(" ".join(here.seen), described(case, answer), after, event, answer, here)


def described(case: Case, answer: Any) -> str:
    """An answer in words."""
    if isinstance(answer, BaseException):
        return f"raises {type(answer).__name__}"
    if case.answer == "passes":
        return "passes"
    if not isinstance(answer, dict) or not answer.get("batchItemFailures"):
        return "success"
    names = {repr(identifier(case.source, letter)): letter for letter in case.letters}
    reported = [names[repr(item["itemIdentifier"])] for item in answer["batchItemFailures"]]
    return "reports " + " ".join(reported)


def delivered_again(case: Case, answer: Any, *, mapping_reports: bool) -> str:
    """The letters that the event source mapping delivers again after ``answer``.

    Source: the Lambda developer guide on batch failures. An invocation that raises comes again as
    a whole; a mapping without ReportBatchItemFailures takes every answer for success; one with it
    fails the whole batch for an identifier that it does not know.
    """
    if isinstance(answer, BaseException) or case.handler == "returns a set":
        return case.letters
    if not mapping_reports or not isinstance(answer, dict):
        return ""
    failures = answer.get("batchItemFailures") or []
    names = {repr(identifier(case.source, letter)): letter for letter in case.letters}
    found = [names.get(repr(i.get("itemIdentifier"))) if isinstance(i, dict) else None for i in failures]  # fmt: skip
    if any(letter is None for letter in found):
        return case.letters
    again = sorted(letter for letter in found if letter is not None)
    if again and case.source not in ("SQS", "SQS FIFO"):
        return case.letters[case.letters.index(again[0]) :]
    return "".join(again)


__all__ = ["CASES", "Case", "Run", "delivered_again", "described", "letter_of", "run"]
