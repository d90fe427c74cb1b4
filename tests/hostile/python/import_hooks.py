# Takes over the import of every module, also of those that the runner imports late.
# tools: ask
class Finder:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(name)
sys.meta_path.insert(0, Finder())
sys.path_hooks.insert(0, lambda path: 1 / 0)
sys.path_importer_cache.clear()
await ask()
1 / 0
