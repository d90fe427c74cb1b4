# Forgets all modules, and forbids to import any.
# tools: ask
sys.modules.clear()
sys.meta_path.clear()
sys.path.clear()
print(await ask())
