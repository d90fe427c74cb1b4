from collections import deque
grid = ["S..#", ".#..", "...E"]
start = next((r, c) for r, row in enumerate(grid) for c, v in enumerate(row) if v == "S")
queue, seen = deque([(start, 0)]), {start}
while queue:
    (r, c), steps = queue.popleft()
    if grid[r][c] == "E":
        print("reached in", steps)
        break
    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        p = (r + dr, c + dc)
        if 0 <= p[0] < 3 and 0 <= p[1] < 4 and grid[p[0]][p[1]] != "#" and p not in seen:
            seen.add(p)
            queue.append((p, steps + 1))
else:
    print("no way")
