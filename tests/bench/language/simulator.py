from collections import deque

CLERKS = 3


def draw(state):
    return (state * 1103515245 + 12345) % 2147483648


def main():
    state = 42
    queue = deque()
    busy = [0, 0, 0]
    served = waited = longest = 0
    for now in range(60000):
        state = draw(state)
        if state % 100 < 35:
            queue.append(now)
        for k in range(CLERKS):
            if busy[k] > 0:
                busy[k] -= 1
            elif len(queue) > 0:
                arrived = queue.popleft()
                waited += now - arrived
                served += 1
                state = draw(state)
                busy[k] = 3 + state % 9
        if len(queue) > longest:
            longest = len(queue)
    print(f"{served} {waited} {longest}")


main()
