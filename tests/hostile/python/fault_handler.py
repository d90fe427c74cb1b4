# Makes the fault handler write to its channels, and crashes.
import faulthandler
attempt(faulthandler.enable, file=3)
faulthandler.dump_traceback_later(0.05, repeat=True, file=4, exit=False)
time.sleep(0.2)
faulthandler._sigsegv()
