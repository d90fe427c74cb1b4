# Registers codecs and error handlers that the runner's text passes through.
# tools: ask
import codecs
codecs.register_error("strict", lambda error: 1 / 0)
codecs.register_error("replace", lambda error: ("x" * 1_000_000, error.end))
codecs.register_error("surrogatepass", lambda error: 1 / 0)
print(await ask(x="\ud800"))
