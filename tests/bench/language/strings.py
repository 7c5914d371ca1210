def main():
    parts = []
    for i in range(40000):
        parts.append(f"item{i % 97}")
    text = ",".join(parts)
    longest = ""
    total = 0
    for word in text.split(","):
        upper = word.upper()
        if upper.endswith("7"):
            total += len(upper)
        if word > longest:
            longest = word
    print(f"{len(text)} {total} {longest}")


main()
