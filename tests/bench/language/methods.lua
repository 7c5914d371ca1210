local Account = {}
Account.__index = Account
function Account.new(start) return setmetatable({ balance = start, moves = 0 }, Account) end
function Account:deposit(amount)
    self.balance = self.balance + amount
    self.moves = self.moves + 1
end
function Account:withdraw(amount)
    if amount > self.balance then return false end
    self.balance = self.balance - amount
    self.moves = self.moves + 1
    return true
end
local a, b, refused = Account.new(100), Account.new(50), 0
for i = 0, 49999 do
    if a:withdraw(i % 7) then b:deposit(i % 7) else refused = refused + 1 end
    if b:withdraw(i % 5) then a:deposit(i % 5) else refused = refused + 1 end
end
print(a.balance .. " " .. b.balance .. " " .. (a.moves + b.moves) .. " " .. refused)
