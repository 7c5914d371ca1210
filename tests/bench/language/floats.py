def main():
    inside = 0
    for py in range(120):
        ci = py / 60.0 - 1.0
        for px in range(120):
            cr = px / 60.0 - 1.5
            zr = zi = 0.0
            n = 0
            while n < 50 and zr * zr + zi * zi < 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                n += 1
            if n == 50:
                inside += 1
    print(inside)


main()
