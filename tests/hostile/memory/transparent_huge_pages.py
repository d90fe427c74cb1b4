# Makes one byte take two megabytes, hundreds of times.
# timeout: 3000
view = mmap.mmap(-1, 4 << 30)
attempt(view.madvise, 14)
for i in range(0, 4 << 30, 2 << 20):
    view[i] = 1
