# Writes maps of users and groups.
for path, text in (("uid_map", "0 0 4294967295"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1"), ("setgroups", "allow"), ("projid_map", "0 0 1"), ("timens_offsets", "1 1000 0")):
    for pid in ("self", "1"):
        if written(f"/proc/{pid}/{path}", text):
            breach(f"wrote {path} of {pid}")
