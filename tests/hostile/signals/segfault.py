# Reads at address 0.
ctypes.string_at(0)
