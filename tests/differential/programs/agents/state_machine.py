state, log = "new", []
while state != "done":
    match state:
        case "new":
            await store_value("order", {"n": 1}); state = "stored"
        case "stored":
            order = await load_value("order"); order["n"] += 1; state = "checked"
        case "checked":
            log.append(order["n"]); state = "done"
    log.append(state)
print(log)
