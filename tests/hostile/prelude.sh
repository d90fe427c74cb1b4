# What every shell script of this corpus begins with; the driver puts it in front.
breach() { printf '\nBREACH: %s\n' "$*"; }
