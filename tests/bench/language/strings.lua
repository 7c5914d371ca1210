local parts = {}
for i = 0, 39999 do
    parts[#parts + 1] = "item" .. (i % 97)
end
local text = table.concat(parts, ",")
local longest, total = "", 0
for word in text:gmatch("[^,]+") do
    local upper = word:upper()
    if upper:sub(-1) == "7" then total = total + #upper end
    if word > longest then longest = word end
end
print(#text .. " " .. total .. " " .. longest)
