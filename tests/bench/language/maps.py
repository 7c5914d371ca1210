def main():
    counts = {}
    seed = 1
    for i in range(100000):
        seed = (seed * 1103515245 + 12345) % 2147483648
        key = f"k{seed % 1000}"
        counts[key] = counts.get(key, 0) + 1
    most = total = 0
    for key, count in counts.items():
        if count > most:
            most = count
        total += count
    print(f"{len(counts)} {most} {total}")


main()
