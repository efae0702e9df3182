"""What an event is: recognised, split into units, identified; and what its answer means.

Each family of sources has a room of its own, loaded only when an event of that family comes
(``registry``). This wing imports keys and errors. It knows nothing of stores and claims.
"""
