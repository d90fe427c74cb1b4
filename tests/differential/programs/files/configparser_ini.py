import configparser
c = configparser.ConfigParser()
c.read_string("[db]\nhost = localhost\nport = 5432\nurl = %(host)s:%(port)s\n[empty]\n")
print(c["db"].getint("port"), c["db"]["url"], c.sections(), c.get("db", "user", fallback="me"))
c["new"] = {"a": "1"}
with open("app.ini", "w") as f:
    c.write(f)
