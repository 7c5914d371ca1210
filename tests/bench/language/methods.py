class Account:
    def __init__(self, start):
        self.balance = start
        self.moves = 0

    def deposit(self, amount):
        self.balance += amount
        self.moves += 1

    def withdraw(self, amount):
        if amount > self.balance:
            return False
        self.balance -= amount
        self.moves += 1
        return True


def main():
    a, b = Account(100), Account(50)
    refused = 0
    for i in range(50000):
        if a.withdraw(i % 7):
            b.deposit(i % 7)
        else:
            refused += 1
        if b.withdraw(i % 5):
            a.deposit(i % 5)
        else:
            refused += 1
    print(f"{a.balance} {b.balance} {a.moves + b.moves} {refused}")


main()
