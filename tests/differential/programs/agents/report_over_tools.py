users = await asyncio.gather(*(get_user(id=i) for i in (1, 2, 3)))
lines = ["# Users", ""]
for u in users:
    lines.append(f"- **{u['name']}**: {', '.join(u['roles']) or 'no roles'}")
with open("report.md", "w", encoding="utf-8") as f:
    f.write("\n".join(lines) + "\n")
sent = await send_mail(to="boss@example.com", subject="Report", body="\n".join(lines))
print(sent["id"])
