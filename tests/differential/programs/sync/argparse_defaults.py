import argparse
parser = argparse.ArgumentParser(description="count")
parser.add_argument("--input", default="notes.txt")
parser.add_argument("-n", type=int, default=3)
args = parser.parse_args()
print(vars(args), parser.parse_args(["-n", "5"]).n, len(open(args.input, encoding="utf-8").readlines()))
