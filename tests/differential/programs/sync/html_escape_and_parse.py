import html
from html.parser import HTMLParser
class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []
    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs).get("href"))
p = Links(); p.feed('<p>See <a href="/x?a=1&amp;b=2">x</a> <a>none</a>')
print(p.found, html.escape('<"&>'), html.unescape("&eacute;&#x20AC;"))
