def load(text):
    try:
        return int(text)
    except ValueError as e:
        raise RuntimeError(f"bad number in config: {text!r}") from e

load("12")
load("twelve")
