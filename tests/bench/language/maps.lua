local counts, seed, n = {}, 1, 0
for i = 1, 100000 do
    seed = (seed * 1103515245 + 12345) % 2147483648
    local key = "k" .. (seed % 1000)
    counts[key] = (counts[key] or 0) + 1
end
local most, total = 0, 0
for key, count in pairs(counts) do
    n = n + 1
    if count > most then most = count end
    total = total + count
end
print(n .. " " .. most .. " " .. total)
