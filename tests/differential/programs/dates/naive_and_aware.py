from datetime import datetime, timezone
start = datetime(2025, 3, 30, tzinfo=timezone.utc)
end = datetime(2025, 3, 31)
print(end > start)
