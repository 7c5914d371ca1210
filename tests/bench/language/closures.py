def compose(f, g):
    return lambda x: f(g(x))


def main():
    calls = 0

    def add(x):
        nonlocal calls
        calls += 1
        return x + 3

    both = compose(add, lambda x: x * 2)
    total = 0
    for i in range(60000):
        total = (total + both(i)) % 1000003
    squares = list(filter(lambda x: x % 3 == 1, map(lambda x: x * x, range(20000))))
    print(f"{total} {calls} {len(squares)}")


main()
