def main():
    n = 300000
    prime = [True] * (n + 1)
    prime[0] = prime[1] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            k = i * i
            while k <= n:
                prime[k] = False
                k += i
        i += 1
    count = 0
    for p in prime:
        if p:
            count += 1
    print(count)


main()
