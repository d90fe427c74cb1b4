from string import Template
user = await get_user(1)
t = Template("Dear $name,\nyou have ${n} roles. It costs $$5.\n")
text = t.substitute(name=user["name"], n=len(user["roles"]))
print(text, t.safe_substitute({}))
t.substitute(name="x")
