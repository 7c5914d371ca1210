class Body:
    def __init__(self, x, y, vx, vy):
        self.x, self.y, self.vx, self.vy, self.hits = x, y, vx, vy, 0


def main():
    bodies = [Body(i * 1.0, i * 2.0, 1.0, -0.5) for i in range(20)]
    for step in range(2000):
        for b in bodies:
            b.x += b.vx * 0.01
            b.y += b.vy * 0.01
            if b.x > 20.0:
                b.vx = -b.vx
                b.hits += 1
    print(sum(b.hits for b in bodies))


main()
