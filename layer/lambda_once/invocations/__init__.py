"""One event or one batch, from its opening to its answer.

``single`` is an event that is one unit. ``batch`` drives an event of many: ``plan`` says which
units may be handed over next and ``answer`` what the source is told; both are pure. This wing
imports claims, events, results and values. It never calls a handler: it hands out the calls to
make, and is told what came of them.
"""
