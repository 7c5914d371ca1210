local CLERKS = 3
local function draw(state) return (state * 1103515245 + 12345) % 2147483648 end
local state, queue, first, busy = 42, {}, 1, { 0, 0, 0 }
local served, waited, longest = 0, 0, 0
for now = 0, 59999 do
    state = draw(state)
    if state % 100 < 35 then queue[#queue + 1] = now end
    for k = 1, CLERKS do
        if busy[k] > 0 then
            busy[k] = busy[k] - 1
        elseif #queue >= first then
            waited = waited + now - queue[first]
            first = first + 1
            served = served + 1
            state = draw(state)
            busy[k] = 3 + state % 9
        end
    end
    if #queue - first + 1 > longest then longest = #queue - first + 1 end
end
print(served .. " " .. waited .. " " .. longest)
