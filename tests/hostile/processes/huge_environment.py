# Gives its children an environment of megabytes.
for count in (1, 10, 100):
    attempt(subprocess.run, ["/bin/true"], env={f"v{i}": "x" * 100_000 for i in range(count)})
os.environ.update({f"w{i}": "y" * 1000 for i in range(1000)})
