raise ExceptionGroup("two problems", [ValueError("a"), ExceptionGroup("inner", [KeyError("k")])])
