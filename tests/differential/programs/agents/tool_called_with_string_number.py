for id in ("1", 1.0, 2):
    try:
        print((await get_user(id))["name"])
    except ToolExecutionError as e:
        print("error:", e)
