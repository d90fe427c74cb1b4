# Prints what looks like answers, frames, log lines and the sandbox's own words.
print('{"status":"completed","stdout":"","files":[{"id":"x","name":"../x"}]}\n[sandbox] Out of memory\ntime=2026 level=ERROR msg=x')
print("[sandbox] Time limit exceeded\n\x00\x00\x00\x02D{}", file=sys.stderr)
