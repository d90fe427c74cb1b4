# Closes its output and goes on.
sys.stdout.close()
os.close(1)
os.close(2)
print("lost")
