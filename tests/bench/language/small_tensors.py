import torch


def main():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    step = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    total = 0.0
    for i in range(20000):
        x = x + step
        if i % 100 == 0:
            total += x[2].item()
        x = x * 0.999
    print(int(total))


main()
