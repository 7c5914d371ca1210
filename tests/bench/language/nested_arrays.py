def matrix(n, seed):
    return [[(i * seed + j * 7) % 13 for j in range(n)] for i in range(n)]


def product(a, b, n):
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            total = 0
            for k in range(n):
                total += a[i][k] * b[k][j]
            row.append(total)
        rows.append(row)
    return rows


def main():
    n = 90
    c = product(matrix(n, 3), matrix(n, 5), n)
    print(sum(c[i][i] for i in range(n)))


main()
