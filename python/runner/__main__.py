"""Entry of the runner: ``python3 -I DIRECTORY zygote`` or ``… sandbox CONFIGURATION KIND``."""

import sys

if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit("the runner needs Python 3.11 or later, this is " + sys.version.split()[0])
    if sys.argv[1:] == ["zygote"]:
        from fermata import zygote

        zygote.main()
    elif len(sys.argv) == 4 and sys.argv[1] == "sandbox":
        from fermata import container

        container.main(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["sandbox"]:
        sys.exit("server and sandbox image are of different versions: make the image again, from the server's version")
    else:
        sys.exit("usage: python3 -I DIRECTORY zygote | sandbox CONFIGURATION KIND")
