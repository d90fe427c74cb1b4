# Traces and profiles every function of the runner, in all threads.
# tools: ask
def trace(frame, event, argument):
    if "fermata" in frame.f_code.co_filename:
        for name in list(frame.f_locals):
            frame.f_locals[name] = None
    return trace
sys.settrace(trace)
sys.setprofile(trace)
threading.settrace(trace)
print(await ask())
