"""Counts the words of a text.

Usage: run it.
"""
import textwrap
print(__doc__.splitlines()[0])
print(textwrap.shorten("one two three four five", 14), len("a b c".split()))
