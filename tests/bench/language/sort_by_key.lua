local people, seed = {}, 7
for i = 0, 19999 do
    seed = (seed * 1103515245 + 12345) % 2147483648
    people[#people + 1] = { id = i, age = seed % 1000 }
end
table.sort(people, function(a, b)
    if a.age == b.age then return a.id < b.id end
    return a.age < b.age
end)
local check = 0
for i = 1, #people do check = (check * 31 + people[i].id) % 1000003 end
print(check)
