match = re.search(r"(\d+)", "no digits")
print(match.group(1))
