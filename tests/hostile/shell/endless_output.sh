# Prints, to a pipe that nobody reads and to its output, until its time is over.
# timeout: 1500
cat /dev/urandom | base64 &
yes | sleep 100 &
wait
