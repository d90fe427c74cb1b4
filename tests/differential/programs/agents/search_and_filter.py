seen = {}
for word in ("password", "report", "nothing"):
    answer = await search(text=word)
    for hit in answer["hits"]:
        seen.setdefault(hit["id"], hit["title"])
    print(word, answer["total"])
return [seen[k] for k in sorted(seen)]
