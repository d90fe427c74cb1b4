# Looks through all objects for secrets, configurations and paths of the server.
for thing in gc.get_objects():
    if type(thing).__name__ == "Config" and hasattr(thing, "seccomp"):
        breach("has the configuration of the sandbox")
    if isinstance(thing, dict):
        for key in list(thing)[:1000]:
            if isinstance(key, str) and key.startswith("FERMATA_"):
                breach(f"has the setting {key}")
