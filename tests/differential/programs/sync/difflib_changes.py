import difflib
old = ["alpha", "beta", "gamma"]
new = ["alpha", "beta2", "gamma", "delta"]
print("\n".join(difflib.unified_diff(old, new, "old", "new", lineterm="")))
print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 2))
