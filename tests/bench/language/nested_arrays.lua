local function matrix(n, seed)
    local rows = {}
    for i = 0, n - 1 do
        local row = {}
        for j = 0, n - 1 do row[j] = (i * seed + j * 7) % 13 end
        rows[i] = row
    end
    return rows
end
local function product(a, b, n)
    local rows = {}
    for i = 0, n - 1 do
        local row = {}
        for j = 0, n - 1 do
            local sum = 0
            for k = 0, n - 1 do sum = sum + a[i][k] * b[k][j] end
            row[j] = sum
        end
        rows[i] = row
    end
    return rows
end
local n = 90
local c = product(matrix(n, 3), matrix(n, 5), n)
local trace = 0
for i = 0, n - 1 do trace = trace + c[i][i] end
print(trace)
