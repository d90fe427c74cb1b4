result = await 5
