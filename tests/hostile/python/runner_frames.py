# Looks in the frames that called it for what the server has told them.
found = sys._getframe()
seen = []
while found:
    for name, value in found.f_locals.items():
        if name == "config" or hasattr(value, "first_user") or type(value).__name__ == "Config":
            breach(f"has the configuration {str(value)[:200]}")
    found = found.f_back
