from urllib.parse import urlparse, parse_qs, urlencode, quote, urljoin
u = urlparse("https://user@example.com:8443/a/b;p?x=1&x=2&y=%C3%BC#frag")
print(u.hostname, u.port, parse_qs(u.query), u.fragment)
print(urlencode({"q": "zürich & co", "n": [1, 2]}, doseq=True), quote("a/b c"), urljoin("http://h/a/b", "../c"))
