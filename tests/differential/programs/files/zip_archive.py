import zipfile, io
with zipfile.ZipFile("data.zip", "w", zipfile.ZIP_DEFLATED) as z:
    info = zipfile.ZipInfo("a.txt", date_time=(2025, 1, 1, 0, 0, 0))
    z.writestr(info, "hello " * 10)
    z.writestr(zipfile.ZipInfo("b/ü.txt", (2025, 1, 1, 0, 0, 0)), b"\x00\x01")
with zipfile.ZipFile("data.zip") as z:
    print(z.namelist(), z.read("a.txt")[:5], z.testzip())
