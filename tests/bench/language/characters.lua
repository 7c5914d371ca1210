local parts = {}
for i = 1, 2000 do parts[i] = "The quick brown fox jumps over the lazy dog. " end
local text = table.concat(parts)
local vowels, spaces, check = 0, 0, 0
for c in text:gmatch(".") do
    if c == "a" or c == "e" or c == "i" or c == "o" or c == "u" then
        vowels = vowels + 1
    elseif c == " " then
        spaces = spaces + 1
    else
        check = (check * 31 + c:byte()) % 1000003
    end
end
print(vowels .. " " .. spaces .. " " .. check)
