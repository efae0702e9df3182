"""One frozen ``Outcome`` to the world: log, metrics, traces.

``reporter`` is the one hook; each sink has a room of its own. This wing imports values and the
configuration. It decides nothing, and whatever fails in it changes nothing for an invocation.
"""
