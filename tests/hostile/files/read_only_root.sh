# Writes wherever only the system may.
for path in / /usr /usr/bin /etc /opt/fermata /mnt /dev /proc /run /var /home /root; do
    if (echo x >"$path/hostile") 2>/dev/null; then breach "wrote to $path"; fi
    if mkdir "$path/hostile.d" 2>/dev/null; then breach "made a directory in $path"; fi
done
