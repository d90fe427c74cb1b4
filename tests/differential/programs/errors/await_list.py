results = await [get_user(1)]
