# Signals the group with number 0 and every small number, as seen from here.
for group in range(1, 400):
    if group != os.getpgid(0):
        attempt(os.killpg, group, signal.SIGTERM)
if os.getpgid(0) == 0 or os.getsid(0) == 0:
    breach("is in a process group or session of the outside")
