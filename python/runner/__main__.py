"""Entry of the runner: ``python3 -I DIRECTORY zygote``."""

import sys

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["zygote"]:
            from fermata import zygote

            zygote.main()
        case _:
            sys.exit("usage: python3 -I DIRECTORY zygote")
