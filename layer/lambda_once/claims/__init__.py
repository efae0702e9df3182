"""Who may run, and who may settle.

``protocol`` holds the rules and can be read alone. ``claimer`` is one unit from its claim to its
end: ``claiming`` takes the claim or finds what is in its way, ``waiting`` outlasts another owner,
``settling`` completes or releases. This wing imports the store's port, results, telemetry's
values and the configuration. It never looks into an event.
"""
