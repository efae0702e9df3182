"""Explores all schedules of a scenario, and prints the shortest one that breaks an invariant.

The search goes from world to world, breadth first, and looks at each world once. That loses
nothing: a ``World`` holds all that the further steps and checks depend on (the code's position is a
``Node``, which stands for the exact list of answers and times the code has had, and the code is a
function of these), so two schedules that lead to equal worlds go on alike. Contenders that are
alike and have not started are interchangeable, so they start in the order of their names.

Every step uses up something (an answer, a fault, a copy, an instant), so no schedule is endless and
the worlds form a graph without cycles. The schedules that it stands for are counted exactly, as
paths from the first world to worlds without a further step.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lambda_once.record import COMPLETED, Record
from tests.protocol.model import (
    CLAIM,
    GONE,
    READ,
    SENDS,
    START_MS,
    Failure,
    Finished,
    Local,
    NotStarted,
    Pending,
    Protection,
    Reply,
    Request,
    Running,
    Scenario,
    Sleeping,
    World,
    add_copy,
    apply,
    first_world,
    instants,
    protected_until_ms,
)
from tests.protocol.replay import RAISED, RETURNED, Replay
from tests.protocol.rules import (
    INVARIANTS,
    Breach,
    Prober,
    check_answer,
    check_change,
    check_reports,
    check_start,
)

REFUSED = Failure("ModelledFault", maybe_applied=False)
NO_ANSWER = Failure("ReadTimeoutError", maybe_applied=True)


class Action(NamedTuple):
    """One step: what happens, and to which contender or copy."""

    kind: str
    who: int = 0


class Move(NamedTuple):
    """A step that is possible, where it leads, and what it breaks."""

    action: Action
    world: World
    breaches: list[Breach]


class Totals(NamedTuple):
    """How much was explored.

    ``states`` counts worlds, ``steps`` the ways from one to another, by ``kinds`` of step. ``runs``
    counts how often the real code was run from its start.
    """

    scenario: str
    schedules: int
    states: int
    steps: int
    runs: int
    kinds: Counter[str]


class InvariantViolation(AssertionError):  # noqa: N818  it is a finding, not a fault
    """An invariant does not hold; the message is the schedule that shows it."""

    def __init__(self, breaches: list[Breach], schedule: str) -> None:
        self.invariants = tuple(breach.invariant for breach in breaches)
        self.schedule = schedule
        seen = "\n".join(f"  {breach.invariant}: {breach.seen}" for breach in breaches)
        super().__init__(f"an invariant is violated:\n{seen}\nby this schedule:\n{schedule}")


class Explorer:
    """One scenario with the code as it is now."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._replays = [Replay(scenario, contender) for contender in scenario.contenders]
        self._prober = Prober(scenario)

    def explore(self, invariants: frozenset[str] = INVARIANTS) -> Totals:
        """Look at every world; raises InvariantViolation for the first that breaks an invariant.

        With ``invariants`` only breaches of these count.
        """
        with _no_garbage_collection():
            return self._explore(self.first_world(), invariants)

    def _explore(self, first: World, invariants: frozenset[str]) -> Totals:
        numbers = {first: 0}
        worlds = [first]
        origins: list[tuple[int, Action]] = [(0, Action("begin"))]
        successors: list[list[int]] = []
        kinds: Counter[str] = Counter()
        for number, world in enumerate(worlds):  # grows while it is walked
            reached = []
            for move in self.moves(world):
                if any(breach.invariant in invariants for breach in move.breaches):
                    actions = [*_actions_to(number, origins), move.action]
                    raise InvariantViolation(move.breaches, self.narrate(actions))
                found = numbers.setdefault(move.world, len(worlds))
                if found == len(worlds):
                    worlds.append(move.world)
                    origins.append((number, move.action))
                reached.append(found)
                kinds[move.action.kind] += 1
            successors.append(reached)
        return Totals(
            self._scenario.name,
            count_paths(successors),
            len(worlds),
            kinds.total(),
            self._prober.runs + sum(replay.runs for replay in self._replays),
            kinds,
        )

    def first_world(self) -> World:
        """Where every schedule begins."""
        return first_world(self._scenario, tuple(replay.root() for replay in self._replays))

    def moves(self, world: World) -> Iterator[Move]:
        """Every step that is possible in ``world``, always in the same order."""
        for index, local in enumerate(world.contenders):
            if local.node is not None:
                yield from self._moves_of(world, index, local, local.node.pending)
        for index in range(len(world.copies)):
            yield self._deliver(world, index)
        yield from self._deletion(world)
        later_ms = [at for at in instants(self._scenario, world) if at > world.now_ms]
        if later_ms:
            yield self._advance(world, min(later_ms))

    def _moves_of(self, world: World, index: int, local: Local, pending: Pending) -> Iterator[Move]:
        if isinstance(pending, NotStarted):
            if self._may_start(world, index):
                yield self._resume("start", world, index, None)
            return
        if local.reply is not None:
            yield self._resume("receive", world, index, local.reply.answer)
        elif isinstance(pending, Request):
            yield from self._requested(world, index, local, pending)
        elif isinstance(pending, Running):
            yield self._resume("return", world, index, RETURNED)
            yield self._resume("raise", world, index, RAISED)
        elif isinstance(pending, Sleeping) and world.now_ms >= pending.until_ms:
            yield self._resume("wake", world, index, None)
        if world.faults != 0:
            yield Move(Action("die", index), _killed(_faulted(world), index), [])

    def _may_start(self, world: World, index: int) -> bool:
        """Of contenders that are alike, the first by name starts first."""
        me = self._scenario.contenders[index]
        return not any(
            local.node is not None
            and isinstance(local.node.pending, NotStarted)
            and other == me._replace(name=other.name)
            for other, local in zip(
                self._scenario.contenders[:index], world.contenders[:index], strict=True
            )
        )

    def _requested(
        self, world: World, index: int, local: Local, request: Request
    ) -> Iterator[Move]:
        """What may become of a request that a contender waits for."""
        applied, answer, breaches = self._apply(world, request)
        yield self._resume("answer", applied, index, answer, breaches)
        if world.faults == 0:
            return
        faulted = _faulted(world)
        yield self._resume("refuse", faulted, index, REFUSED)
        late = Local(local.node, local.sends, Reply(answer))
        slow = _with_local(_faulted(applied), index, late)
        yield Move(Action("slow", index), slow, breaches)
        if request.operation == READ:
            return
        copies = add_copy(world.copies, request)
        again = Local(local.node, local.sends + 1)
        sent = _with_local(faulted, index, again, copies)
        yield self._resume("give_up", sent, index, NO_ANSWER)
        if again.sends < SENDS:
            yield Move(Action("silence", index), sent, [])

    def _apply(self, world: World, request: Request) -> tuple[World, object, list[Breach]]:
        """The world after the store has seen ``request``, and the store's answer."""
        record, answer = apply(world.record, request, returns_old=self._scenario.returns_old)
        breaches = check_change(self._scenario, world, request, record)
        if record == world.record:
            return world, answer, breaches
        protections, completions = world.protections, world.completions
        if request.operation != CLAIM:
            owner = request.claim.owner
            protections = tuple(other for other in protections if other.owner != owner)
        if record is not None and record.status == COMPLETED:
            completions = (*completions, record)
        changed = world._replace(record=record, protections=protections, completions=completions)
        return changed, answer, breaches + self._prober.check(record)

    def _resume(
        self,
        kind: str,
        world: World,
        index: int,
        answer: object,
        breaches: list[Breach] | None = None,
    ) -> Move:
        """The contender goes on with ``answer`` up to its next request."""
        before = world.contenders[index].node
        assert before is not None
        node = before.after(answer, world.now_ms)
        contender = self._scenario.contenders[index]
        found = list(breaches or ())
        found += check_reports(world, answer, node, len(before.reports))
        if node.claim is not None and before.claim is None:
            found += check_start(self._scenario, world, node)
            until_ms = protected_until_ms(contender, node)
            started = Protection(node.claim.owner, until_ms)
            world = world._replace(protections=(*world.protections, started))
        if isinstance(node.pending, Finished):
            found += check_answer(self._scenario, world, contender, node.pending)
            return Move(Action(kind, index), _with_local(world, index, GONE), found)
        return Move(Action(kind, index), _with_local(world, index, Local(node)), found)

    def _deliver(self, world: World, index: int) -> Move:
        """A copy that nobody waits for reaches the store."""
        rest = world.copies[:index] + world.copies[index + 1 :]
        applied, _, breaches = self._apply(world, world.copies[index])
        return Move(Action("deliver", index), applied._replace(copies=rest), breaches)

    def _deletion(self, world: World) -> Iterator[Move]:
        """The store deletes the record by itself after its expiry, as TTL does."""
        record = world.record
        if not self._scenario.deletes or record is None:
            return
        latest_ms = world.now_ms + self._scenario.fastest_ms
        if record.expires_at_s < latest_ms // 1000:
            yield Move(Action("expire"), world._replace(record=None), self._prober.check(None))

    def _advance(self, world: World, now_ms: int) -> Move:
        """Time passes; the platform kills whoever has reached the deadline, if it does so."""
        running = tuple(other for other in world.protections if now_ms < other.until_ms)
        world = world._replace(now_ms=now_ms, protections=running)
        kind = "advance"
        for index, local in enumerate(world.contenders):
            if self._scenario.managed or local.node is None:
                continue
            if 0 < local.node.deadline_ms <= now_ms:
                kind, world = "kill", _killed(world, index)
        return Move(Action(kind), world, [])

    def narrate(self, actions: list[Action]) -> str:
        """The schedule in words, one line for each step."""
        world, lines = self.first_world(), []
        for action in actions:
            move = next(move for move in self.moves(world) if move.action == action)
            lines.append(_line(self._scenario, world, move))
            world = move.world
        clocks = ", ".join(
            f"{other.name}'s clock {other.offset_ms:+d} ms" for other in self._scenario.contenders
        )
        heading = f"  scenario: {self._scenario.name} ({clocks})"
        return "\n".join([heading, *lines])


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """All that is made here is kept, so looking for garbage only costs time (a quarter of it)."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _faulted(world: World) -> World:
    return world._replace(faults=world.faults - 1) if world.faults else world


def _with_local(
    world: World, index: int, local: Local, copies: tuple[Request, ...] | None = None
) -> World:
    """``world`` with another state of one contender, and other copies under way if given.

    Built directly: this is where most of the time goes, and ``_replace`` takes three times as long.
    """
    now_ms, record, old_copies, others, faults, protections, completions = world
    contenders = (*others[:index], local, *others[index + 1 :])
    copies = old_copies if copies is None else copies
    return World(now_ms, record, copies, contenders, faults, protections, completions)


def _killed(world: World, index: int) -> World:
    """The contender is gone; a request it waits for may still arrive."""
    local = world.contenders[index]
    assert local.node is not None
    copies = world.copies
    if isinstance(local.node.pending, Request) and local.reply is None:
        copies = add_copy(copies, local.node.pending)
    return _with_local(world, index, GONE, copies)


def _actions_to(number: int, origins: list[tuple[int, Action]]) -> list[Action]:
    """The steps from the first world to world ``number``."""
    actions = []
    while number:
        number, action = origins[number]
        actions.append(action)
    return actions[::-1]


def count_paths(successors: list[list[int]]) -> int:
    """The number of ways from node 0 to a node without successors, in a graph without cycles."""
    paths: dict[int, int] = {}
    stack = [0]
    while stack:
        node = stack[-1]
        missing = [other for other in successors[node] if other not in paths]
        if missing:
            stack += missing
            continue
        stack.pop()
        paths[node] = sum(paths[other] for other in successors[node]) or 1
    return paths[0]


_WORDS = {
    "start": "{name} is delivered and {next}",
    "answer": "{name}'s {request} is answered: {answer}; {name} {next}",
    "refuse": "{name}'s {request} is answered by an error, not applied; {name} {next}",
    "slow": "{name}'s {request} reaches the store; its answer is slow",
    "receive": "{name} receives the slow answer to its {request} and {next}",
    "give_up": "{name} gets no answer to its {request} and gives up; {name} {next}",
    "silence": "{name} gets no answer to its {request} and repeats it",
    "return": "{name}'s handler returns; {name} {next}",
    "raise": "{name}'s handler raises; {name} {next}",
    "wake": "{name} wakes and {next}",
    "die": "{name} dies while it {now}",
    "deliver": "{copy} reaches the store, nobody waits for it",
    "expire": "the store deletes the expired record",
    "advance": "time passes to +{later} ms",
    "kill": "time passes to +{later} ms; the platform ends {gone}",
}


def _line(scenario: Scenario, world: World, move: Move) -> str:
    kind, index = move.action
    words = {"later": str(move.world.now_ms - START_MS), "gone": _gone(scenario, world, move.world)}
    if kind == "deliver":
        words["copy"] = _name_of(world.copies[index])
    elif kind not in ("expire", "advance", "kill"):
        words |= _words_of_contender(scenario, world, move)
    text = _WORDS[kind].format(**words)
    if world.record != move.world.record:
        text += f"  [store: {_describe(move.world.record)}]"
    return f"  +{world.now_ms - START_MS:>7} ms  {text}"


def _words_of_contender(scenario: Scenario, world: World, move: Move) -> dict[str, str]:
    index = move.action.who
    node, after = world.contenders[index].node, move.world.contenders[index].node
    assert node is not None
    pending = node.pending
    return {
        "name": scenario.contenders[index].name,
        "request": _name_of(pending) if isinstance(pending, Request) else "",
        "now": _doing(pending),
        "next": "is done" if after is None else _doing(after.pending),
        "answer": _verdict_of(world, pending, scenario),
    }


def _verdict_of(world: World, pending: Pending, scenario: Scenario) -> str:
    if not isinstance(pending, Request):
        return ""
    _, answer = apply(world.record, pending, returns_old=scenario.returns_old)
    if pending.operation == READ:
        return _describe(world.record)
    return "applied" if answer is None else f"refused by {_describe(world.record)}"


def _gone(scenario: Scenario, before: World, after: World) -> str:
    """The names of the contenders that this step has ended."""
    old_and_new = zip(scenario.contenders, before.contenders, after.contenders, strict=True)
    return " and ".join(
        contender.name
        for contender, old, new in old_and_new
        if old.node is not None and new.node is None
    )


def _doing(pending: Pending) -> str:
    if isinstance(pending, Request):
        return f"sends {_name_of(pending)}"
    if isinstance(pending, Sleeping):
        return f"sleeps until +{pending.until_ms - START_MS} ms"
    return "runs its handler" if isinstance(pending, Running) else "is done"


def _name_of(request: Request) -> str:
    return f"{request.operation} as {request.claim.owner}"


def _describe(record: Record | None) -> str:
    if record is None:
        return "nothing"
    until_ms = record.in_progress_until_ms or record.expires_at_s * 1000
    return f"{record.status} of {record.owner} until +{until_ms - START_MS} ms"
