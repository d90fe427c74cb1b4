values = {"a": 1, "b": 0}
result = (
    values["a"]
    + values["a"]
    / values["b"]
)
