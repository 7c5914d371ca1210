local function compose(f, g) return function(x) return f(g(x)) end end
local calls = 0
local both = compose(function(x) calls = calls + 1 return x + 3 end, function(x) return x * 2 end)
local total = 0
for i = 0, 59999 do total = (total + both(i)) % 1000003 end
local function map(f, xs) local r = {} for i = 1, #xs do r[i] = f(xs[i]) end return r end
local function filter(f, xs)
    local r = {}
    for i = 1, #xs do if f(xs[i]) then r[#r + 1] = xs[i] end end
    return r
end
local numbers = {}
for i = 0, 19999 do numbers[#numbers + 1] = i end
local squares = filter(function(x) return x % 3 == 1 end, map(function(x) return x * x end, numbers))
print(total .. " " .. calls .. " " .. #squares)
