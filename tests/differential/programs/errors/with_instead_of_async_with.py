class S:
    async def __aenter__(self): return self
    async def __aexit__(self, *a): pass
with S() as s:
    pass
