local inside = 0
for py = 0, 119 do
    local ci = py / 60.0 - 1.0
    for px = 0, 119 do
        local cr = px / 60.0 - 1.5
        local zr, zi, n = 0.0, 0.0, 0
        while n < 50 and zr * zr + zi * zi < 4.0 do
            zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
            n = n + 1
        end
        if n == 50 then inside = inside + 1 end
    end
end
print(inside)
