local words = { "low", "lower", "lowest", "new", "newer", "newest", "wide", "wider", "widest", "slow", "slower" }
local corpus = {}
for r = 0, 11 do
    for i, word in ipairs(words) do
        local pieces = {}
        for c in word:gmatch(".") do pieces[#pieces + 1] = c end
        corpus[#corpus + 1] = { pieces = pieces, count = 1 + ((i - 1) * 7 + r) % 5 }
    end
end
local merges = {}
for step = 1, 12 do
    local pairs_of = {}
    for _, entry in ipairs(corpus) do
        local pieces = entry.pieces
        for i = 2, #pieces do
            local pair = pieces[i - 1] .. " " .. pieces[i]
            pairs_of[pair] = (pairs_of[pair] or 0) + entry.count
        end
    end
    local best, most = "", 0
    for pair, count in pairs(pairs_of) do
        if count > most or (count == most and pair < best) then best, most = pair, count end
    end
    if most == 0 then break end
    local left, right = best:match("(%S+) (%S+)")
    merges[#merges + 1] = best
    for _, entry in ipairs(corpus) do
        local merged, pieces, i = {}, entry.pieces, 1
        while i <= #pieces do
            if i < #pieces and pieces[i] == left and pieces[i + 1] == right then
                merged[#merged + 1] = pieces[i] .. pieces[i + 1]
                i = i + 2
            else
                merged[#merged + 1] = pieces[i]
                i = i + 1
            end
        end
        entry.pieces = merged
    end
end
print(table.concat(merges, ","))
