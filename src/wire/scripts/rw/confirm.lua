-- rw/confirm: is it held still, here, as it was granted? If so something is written that changes nothing. For WAIT,
-- which tells what replicas have of its own link's writes: who has this one has the hold.
-- KEYS  1 lock  2 leases  3 grants
-- ARGV  1 hold id  2 token of the grant, 0: whichever
-- Returns  ms that are left of its lease | 0 not held, or not for another millisecond
-- Repeatable. Runs on a full server, and where the slot is moving as long as all three are there.
--@include common/grant_text.lua

local id, token = ARGV[1], ARGV[2]
local grant = redis.call('HGET', KEYS[3], id)
local shape = shape_of(grant)
if not shape or (token ~= '0' and token ~= token_of(grant)) then return 0 end
local ends = redis.call('ZSCORE', KEYS[2], id)
if not ends then return 0 end
local hash = redis.call('HMGET', KEYS[1], 'writer', 'r:' .. id)
local reads, writes = hash[2] ~= false, hash[1] == id
if reads ~= (shape ~= 'w') or writes ~= (shape ~= 'r') then return 0 end

-- By the deadline or by the keys, whichever is first: after a move they may differ, and a full renewal puts that right.
local clock = redis.call('TIME')
local left = ends - clock[1] * 1000 - math.floor(clock[2] / 1000)
for i = 1, 3 do
    local of_key = redis.call('PTTL', KEYS[i])
    if of_key >= 0 then left = math.min(left, of_key) end
end
if left < 1 then return 0 end

-- Removing nothing is a write that a full server lets pass, and then the next one, too.
redis.call('ZREM', KEYS[2], '')
redis.call('HSET', KEYS[3], id, grant)
return left
