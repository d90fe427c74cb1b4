# Prints control sequences for terminals, logs and browsers.
print("\x1b[2J\x1b]0;title\x07\x1bP0;1|17/41\x1b\\\x9b31m\r\b\x7f<script>alert(1)</script>\x00\n" * 100)
