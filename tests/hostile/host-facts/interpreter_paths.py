# Looks along the interpreter's paths for directories that are no part of it.
for path in sys.path:
    for name in attempt(os.listdir, path) or ():
        if name in (".git", ".env", "id_rsa", ".ssh", "settings.json", "secret", "executions.db"):
            breach(f"sees {path}/{name}")
