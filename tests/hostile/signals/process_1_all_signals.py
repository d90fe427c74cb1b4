# Sends every signal to process 1.
for number in range(1, 65):
    attempt(os.kill, 1, number)
    syscall(234, 1, 1, number)
    syscall(200, 1, number)
print("sent")
