import tomllib, json
config = tomllib.loads('title = "x"\n[owner]\nborn = 1979-05-27\nports = [1, 2]\n')
print(config["owner"]["born"].year, config["owner"]["ports"])
with open("rows.jsonl", "w") as f:
    for row in ({"id": 1}, {"id": 2, "tags": ["ä"]}):
        f.write(json.dumps(row) + "\n")
print([json.loads(line) for line in open("rows.jsonl")])
