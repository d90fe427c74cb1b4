from datetime import date
today = date.fromisoformat((await now())[:10])
people = json.load(open("people.json", encoding="utf-8"))
for p in people:
    born = date.fromisoformat(p["born"])
    age = today.year - born.year - ((today.month, today.day) < (born.month, born.day))
    print(p["name"], age, f"{born:%d %b}")
return max(p["born"] for p in people)
