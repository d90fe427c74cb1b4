# Puts what loaders and shells obey into the environment of its children and of later calls.
# tools: ask
export LD_PRELOAD=/mnt/data/evil.so LD_LIBRARY_PATH=/mnt/data BASH_ENV=/mnt/data/evil.sh ENV=/mnt/data/evil.sh PYTHONPATH=/mnt/data PYTHONSTARTUP=/mnt/data/x.py GCONV_PATH=/mnt/data PATH=/mnt/data
echo 'echo evil >&2' >/mnt/data/evil.sh
ask '{}'
