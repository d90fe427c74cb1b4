# The classic fork bomb of the shell.
# timeout: 2000
bomb() { bomb | bomb & }
bomb
wait
