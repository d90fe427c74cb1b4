# Slows its process group down, which must be its own sandbox's.
# tools: ask
attempt(os.setpriority, os.PRIO_PGRP, 0, 19)
await ask()
