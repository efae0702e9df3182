"""How the time of an invocation is shared out: the reserves and bounds of claiming and settling."""

from __future__ import annotations

# What is left of the invocation's time for everything that is not a request.
RESERVE_MS = 100
# The same once the handler is done: there is nothing left to do but to answer.
SETTLE_RESERVE_MS = 50
# How long the caller may be kept from a result that cannot be recorded.
COMPLETION_BUDGET_MS = 10_000
# How long a failed claim may take to be given back.
GIVE_BACK_BUDGET_MS = 2_000
