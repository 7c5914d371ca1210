local total = 0
for i = 0, 1499 do
    local row = 0
    for j = 0, 599 do
        if (i + j) % 3 == 0 then row = row + i * j else row = row - j end
    end
    total = (total + row) % 1000003
end
print(total)
