import multiprocessing as mp
value = await echo(4)
print(mp.get_start_method(), value)
