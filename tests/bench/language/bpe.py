def main():
    words = ["low", "lower", "lowest", "new", "newer", "newest", "wide", "wider", "widest", "slow", "slower"]
    corpus = []
    for r in range(12):
        for i, word in enumerate(words):
            corpus.append({"pieces": list(word), "count": 1 + (i * 7 + r) % 5})
    merges = []
    for step in range(12):
        pairs = {}
        for entry in corpus:
            pieces = entry["pieces"]
            for i in range(1, len(pieces)):
                pair = pieces[i - 1] + " " + pieces[i]
                pairs[pair] = pairs.get(pair, 0) + entry["count"]
        best, most = "", 0
        for pair, count in pairs.items():
            if count > most or (count == most and pair < best):
                best, most = pair, count
        if most == 0:
            break
        left, right = best.split(" ")
        merges.append(best)
        for entry in corpus:
            merged = []
            pieces = entry["pieces"]
            i = 0
            while i < len(pieces):
                if i + 1 < len(pieces) and pieces[i] == left and pieces[i + 1] == right:
                    merged.append(pieces[i] + pieces[i + 1])
                    i += 2
                else:
                    merged.append(pieces[i])
                    i += 1
            entry["pieces"] = merged
    print(",".join(merges))


main()
