local bodies = {}
for i = 0, 19 do
    bodies[#bodies + 1] = { x = i * 1.0, y = i * 2.0, vx = 1.0, vy = -0.5, hits = 0 }
end
for step = 1, 2000 do
    for _, b in ipairs(bodies) do
        b.x = b.x + b.vx * 0.01
        b.y = b.y + b.vy * 0.01
        if b.x > 20.0 then
            b.vx = -b.vx
            b.hits = b.hits + 1
        end
    end
end
local hits = 0
for _, b in ipairs(bodies) do hits = hits + b.hits end
print(hits)
