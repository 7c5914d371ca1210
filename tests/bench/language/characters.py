def main():
    text = ""
    for i in range(2000):
        text += "The quick brown fox jumps over the lazy dog. "
    vowels = spaces = check = 0
    for c in text:
        if c in "aeiou":
            vowels += 1
        elif c == " ":
            spaces += 1
        else:
            check = (check * 31 + ord(c)) % 1000003
    print(f"{vowels} {spaces} {check}")


main()
