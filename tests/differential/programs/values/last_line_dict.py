people = json.load(open("people.json", encoding="utf-8"))
{p["name"]: len(p["tags"]) for p in people}
