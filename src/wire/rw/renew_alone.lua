-- rw/renew_alone: make a hold's lease full again, using only the keys that a held lock always has. For a slot that
-- moves: if nobody waits there is no queue, and a script that names a missing key would not run.
-- KEYS  1 lock  2 leases  3 grants
-- ARGV  1 hold id  2 lease ms
-- Returns  {1, shape, token} renewed, and what is held | {3} unclear: send a full renewal
-- Repeatable. Never shortens a lease, and never revives a hold. It removes nobody and serves nobody. If another program
-- holds the lock, too, or hash, leases and grants disagree, the full renewal must correct that.
--@include common/numbers.lua
--@include rw/common/grant_text.lua
--@include common/hold_id.lua

local id, lease = ARGV[1], whole(ARGV[2], 1)
if not lease then return redis.error_reply('ERR holdfast: lease out of range') end

local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
--@include common/deadlines.lua

local newest = newest_lease(KEYS[2])[2]
local ends = redis.call('ZSCORE', KEYS[2], id)
local grant = redis.call('HGET', KEYS[3], id)
local hash = redis.call('HMGET', KEYS[1], 'mode', 'rcount', 'writer', 'wcount', 'r:' .. id)
local writer, reads = hash[3], hash[5] ~= false
local shape = shape_of(grant)

-- The number of holders, by the hash.
local holders = redis.call('HLEN', KEYS[1]) + (shape == 'w' and 1 or 0)
for i = 1, 4 do
    if hash[i] then holders = holders - 1 end
end

-- Counting shows whether other programs hold it, too. But a hash that does not expire with the last lease was perhaps
-- written by one of them: then the script checks every field. Or the hash came from a member whose clock is behind.
local function is_any_foreign()
    for _, field in ipairs(redis.call('HGETALL', KEYS[1])) do
        local reader = string.match(field, '^r:(.*)$')
        if reader and not is_ours(reader) then return true end
    end
    return false
end
local off, foreign = 0, false
if newest and not ends_with(newest, redis.call('PTTL', KEYS[1])) then
    off, foreign = clock_ahead_by(redis.call('PTTL', KEYS[2]), newest), is_any_foreign()
end

local lives = ends and ends + off > now_ms
local as_granted = shape and reads == (shape ~= 'w') and writer == (shape ~= 'r' and id)
local all_ours = not foreign and holders == redis.call('ZCARD', KEYS[2])
    and not redis.call('ZSCORE', KEYS[2], 'foreign')
if not (lives and as_granted and all_ours and (shape == 'r' or holders == 1)) then return {3} end

-- A full server accepts a write that removes nothing, and then the other writes. GT: never shorter.
local moved = off > 0 and shifted(redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'), off) or {}
redis.call('ZREM', KEYS[2], '')
write_all(moved, function(...) return redis.call('ZADD', KEYS[2], ...) end)
redis.call('ZADD', KEYS[2], 'GT', string.format('%.0f', now_ms + lease), id)
local last = string.format('%.0f', redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
redis.call('PEXPIREAT', KEYS[1], last)
redis.call('PEXPIREAT', KEYS[2], last)
redis.call('PEXPIREAT', KEYS[3], last)
return {1, shape, token_of(grant)}
