import re
hits = re.findall(r"\d+ms", open("server.log").read())
hits
