from datetime import datetime
stamp = await now()
when = datetime.fromisoformat(stamp)
day = datetime.strptime(stamp[:10], "%Y-%m-%d")
return {"weekday": f"{day:%A}", "hour": when.hour, "utc": str(when.utcoffset())}
