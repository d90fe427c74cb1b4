# Leaves files with names that mislead whoever lists, prints or stores them.
names = [b"a\nb", b"\xff\xfe", b"a\x1b[2J", b"..a", b"...", b" ", b"\\..\\x", b"C:x", b"a%2f..%2fb", b"-rf", b"a\"b", b"<script>", b"CON", b"a\xe2\x80\xaegpj.exe",
         b"x" * 255, "é".encode(), "e\u0301".encode(), b"token?x=1", b"file;rm", b"$(id)", b"`id`", b"\r\nX-Header: 1", b"a:b", b"~", b"*"]
for name in names:
    with attempt(open, name, "wb") as file:
        file.write(b"x")
