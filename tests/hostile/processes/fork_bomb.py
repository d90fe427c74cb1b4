# Forks without end from every process that it has made.
# timeout: 2000
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
