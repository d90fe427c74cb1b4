f = lambda: await echo(1)
