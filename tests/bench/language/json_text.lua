-- Lua has no JSON of its own: this reads and writes what the other two do.
local function encode(v)
    if type(v) == "table" then
        local out = {}
        if #v > 0 then
            for i, x in ipairs(v) do out[i] = encode(x) end
            return "[" .. table.concat(out, ",") .. "]"
        end
        for k, x in pairs(v) do out[#out + 1] = '"' .. k .. '":' .. encode(x) end
        return "{" .. table.concat(out, ",") .. "}"
    elseif type(v) == "string" then
        return '"' .. v .. '"'
    end
    return tostring(v)
end
local function decode(text, at)
    local c = text:sub(at, at)
    if c == "[" or c == "{" then
        local out, close = {}, c == "[" and "]" or "}"
        at = at + 1
        while text:sub(at, at) ~= close do
            local key = #out + 1
            if c == "{" then
                key, at = decode(text, at)
                at = at + 1
            end
            out[key], at = decode(text, at)
            if text:sub(at, at) == "," then at = at + 1 end
        end
        return out, at + 1
    elseif c == '"' then
        local stop = text:find('"', at + 1, true)
        return text:sub(at + 1, stop - 1), stop + 1
    elseif c == "t" then
        return true, at + 4
    elseif c == "f" then
        return false, at + 5
    end
    local stop = text:find("[^-+.%deE]", at)
    return tonumber(text:sub(at, stop - 1)), stop
end
local records = {}
for i = 0, 1999 do
    records[#records + 1] = { id = i, name = "user " .. i, tags = { "a", "b", "t" .. i % 10 }, score = i * 0.5, active = i % 3 == 0 }
end
local text, total = encode(records), 0.0
for r = 1, 5 do
    for _, record in ipairs((decode(text, 1))) do
        if record.active and record.tags[3] == "t3" then total = total + record.score end
    end
end
print(math.floor(total))
