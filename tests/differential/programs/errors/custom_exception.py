class RowError(ValueError):
    def __init__(self, row, reason):
        super().__init__(row, reason)
        self.row, self.reason = row, reason
    def __str__(self):
        return f"row {self.row}: {self.reason}"

for n, value in enumerate(["1", "2", "x"]):
    if not value.isdigit():
        raise RowError(n, f"{value!r} is no number")
