from operator import itemgetter, attrgetter, methodcaller
import locale
people = json.load(open("people.json", encoding="utf-8"))
print([p["name"] for p in sorted(people, key=lambda p: (-len(p["tags"]), p["born"]))])
print(sorted(["b10", "b9", "a"], key=lambda s: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", s)]))
print(sorted("äzaÄ"), max(people, key=itemgetter("born"))["name"], list(map(methodcaller("upper"), "ab")))
