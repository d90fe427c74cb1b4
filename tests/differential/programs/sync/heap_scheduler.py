import heapq
tasks = [(3, "mail"), (1, "backup"), (2, "report"), (1, "audit")]
heapq.heapify(tasks)
order = [heapq.heappop(tasks)[1] for _ in range(len(tasks))]
print(order, heapq.nlargest(2, [5, 1, 9]), list(heapq.merge([1, 4], [2, 3])))
