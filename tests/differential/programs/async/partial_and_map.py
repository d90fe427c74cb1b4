from functools import partial
to_usd = partial(convert, source="EUR", target="USD")
print(await asyncio.gather(*map(to_usd, [1, 2.5])))
tools = {"user": get_user, "mail": send_mail}
print((await tools["user"](1))["name"], (await tools["mail"](to="x@y.z"))["sent"])
