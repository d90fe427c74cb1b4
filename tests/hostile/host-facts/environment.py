# Looks for settings of the server in the environments that it can see, after an exec too.
text = str(os.environ) + subprocess.run(["env"], capture_output=True, text=True).stdout
for path in ("/proc/self/environ", "/proc/1/environ", "/proc/1/cmdline", "/proc/self/cmdline"):
    text += str(content(path))
for word in ("FERMATA_", "REDIS", "API_KEY", "JWT", "SECRET", "DOCKER_HOST"):
    if word in text:
        breach(f"sees {word}")
