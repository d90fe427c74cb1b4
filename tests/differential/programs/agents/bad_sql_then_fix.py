for sql in ("select nam from customers", "select name from customers limit 1"):
    try:
        print(await query(sql=sql)); break
    except ToolExecutionError as e:
        print("fix:", e)
