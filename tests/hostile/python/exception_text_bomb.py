# Raises an error whose text is 30 MB.
raise ValueError("x" * 30_000_000)
