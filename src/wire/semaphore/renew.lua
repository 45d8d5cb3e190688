-- semaphore/renew: make a hold's lease full again, using only the keys that a held semaphore always has. So it works
-- while a Cluster moves the slot: if nobody waits there is no queue, and a script that names a missing key would not run.
-- KEYS  1 lock  2 leases  3 grants
-- ARGV  1 hold id  2 lease ms
-- Returns  {1} renewed | {0} not held
-- Repeatable. Never shortens a lease, and never revives a hold. It removes nobody and serves nobody.
--@include common/numbers.lua
--@include semaphore/common/grant_text.lua

local id, lease = ARGV[1], whole(ARGV[2], 1)
if not lease then return redis.error_reply('ERR holdfast: lease out of range') end

local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
--@include common/deadlines.lua

local newest = newest_lease(KEYS[2])[2]
local ends = redis.call('ZSCORE', KEYS[2], id)
local grant = redis.call('HGET', KEYS[3], id)
local limit_left_ms = redis.call('PTTL', KEYS[1])
if not (ends and permits_of(grant)) then return {0} end
local leases_left_ms = redis.call('PTTL', KEYS[2])
local off = ends_with(newest, leases_left_ms) and 0 or clock_ahead_by(leases_left_ms, newest)
if ends + off <= now_ms then return {0} end

-- A full server accepts a write that removes nothing, and then the other writes. GT: never shorter.
local moved = off > 0 and shifted(redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'), off) or {}
redis.call('ZREM', KEYS[2], '')
write_all(moved, function(...) return redis.call('ZADD', KEYS[2], ...) end)
redis.call('ZADD', KEYS[2], 'GT', string.format('%.0f', now_ms + lease), id)
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last)) -- newer servers answer 1.8e+12
redis.call('PEXPIREAT', KEYS[3], string.format('%.0f', last))
if limit_left_ms < last - now_ms then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', last - now_ms)) end
return {1}
