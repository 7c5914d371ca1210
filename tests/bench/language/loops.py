def main():
    total = 0
    for i in range(1500):
        row = 0
        for j in range(600):
            if (i + j) % 3 == 0:
                row += i * j
            else:
                row -= j
        total = (total + row) % 1000003
    print(total)


main()
