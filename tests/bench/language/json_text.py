import json


def main():
    records = [
        {"id": i, "name": f"user {i}", "tags": ["a", "b", f"t{i % 10}"], "score": i * 0.5, "active": i % 3 == 0}
        for i in range(2000)
    ]
    text = json.dumps(records)
    total = 0.0
    for r in range(5):
        for record in json.loads(text):
            if record["active"] and record["tags"][2] == "t3":
                total += record["score"]
    print(int(total))


main()
