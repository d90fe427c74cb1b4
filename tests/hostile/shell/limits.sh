# Asks for everything to be unlimited.
for what in c d e f i l m n q r s t u v x; do
    ulimit -H"$what" unlimited 2>/dev/null
done
[ "$(ulimit -u)" = unlimited ] && [ "$(ulimit -n)" = unlimited ] && breach "has no limits"
echo done
