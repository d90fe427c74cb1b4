"""The runner: what runs inside a Fermata sandbox.

``supervisor`` is PID 1 of a sandbox and speaks with the server; ``worker`` runs
the user's program and speaks with the supervisor only. ``zygote`` makes the
sandboxes of the process engine, ``container`` is one of the Docker engine.
Standard library only, Python 3.11 and later.
"""

# The version of the frames; the server refuses another one.
PROTOCOL = 9

# The kinds of sandboxes, as the server names them; fermata.libraries tells what they are.
PLAIN = "plain"
SCIENTIFIC = "scientific"
