from datetime import datetime
for text in ("2025-01-31", "2025-02-30", "31/01/2025"):
    print(text, datetime.strptime(text, "%Y-%m-%d").date())
