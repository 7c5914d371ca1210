from functools import cmp_to_key


def main():
    people = []
    seed = 7
    for i in range(20000):
        seed = (seed * 1103515245 + 12345) % 2147483648
        people.append({"id": i, "age": seed % 1000})
    by_age = sorted(people, key=cmp_to_key(lambda a, b: a["id"] - b["id"] if a["age"] == b["age"] else a["age"] - b["age"]))
    check = 0
    for i in range(len(by_age)):
        check = (check * 31 + by_age[i]["id"]) % 1000003
    print(check)


main()
