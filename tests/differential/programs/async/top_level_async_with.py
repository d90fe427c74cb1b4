class Session:
    async def __aenter__(self):
        print("open", (await now())[:10])
        return self
    async def __aexit__(self, kind, error, tb):
        print("close", kind.__name__ if kind else None)
        return kind is ToolExecutionError
    async def mail(self, to):
        return (await send_mail(to=to, subject="Hi"))["id"]

async with Session() as s:
    print(await s.mail("a@example.com"))
    print(await s.mail("nobody"))
print("after")
