# The beginning of every hostile shell script. The tests put it in front.
breach() { printf '\nBREACH: %s\n' "$*"; }
