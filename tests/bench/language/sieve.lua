local n = 300000
local prime = {}
for i = 0, n do prime[i] = true end
prime[0], prime[1] = false, false
local i = 2
while i * i <= n do
    if prime[i] then
        local k = i * i
        while k <= n do
            prime[k] = false
            k = k + i
        end
    end
    i = i + 1
end
local count = 0
for j = 0, n do
    if prime[j] then count = count + 1 end
end
print(count)
