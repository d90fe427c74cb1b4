# Looks for programs that give rights, and runs them.
for program in su sudo mount umount passwd newgrp chsh gpasswd ping pkexec fusermount; do
    path=$(command -v $program) || continue
    "$path" --help </dev/null >/dev/null 2>&1
done
su -c 'id -u' </dev/null 2>/dev/null | grep -qx 0 && breach "became root"
[ "$(id -u)" = 0 ] && breach "is root"
echo done
