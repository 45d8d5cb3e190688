-- mutex/renew_block: make the lease of a hold with a marked id full again, and fetch tokens for its local grants.
-- KEYS  1 lock  2 queue  3 fence
-- ARGV  1 hold id  2 lease ms  3 token that the caller would like to use up to  4 fence retention ms
--       5 delay ms, part of that lease: with no more left the hold has expired; missing: 0
-- Returns  {1, '', '', '', ceiling, waiters} renewed: the caller may use the tokens up to the ceiling
--          {0} not held by anybody, or expired | {-1, holder's ms left, holder} held by another
-- Repeatable. Never shortens a lease, never revives a hold, never lowers the fence. A client must not carry the tokens
-- away from the clock, so what it would like counts rarely.
--@include common/numbers.lua

local id, lease, wish, retention = ARGV[1], whole(ARGV[2], 1), whole(ARGV[3], 0), whole(ARGV[4], 1)
if not (lease and wish and retention and tonumber(ARGV[5] or 0)) then
    return redis.error_reply('ERR holdfast: lease, token or retention out of range')
end
local holder = redis.call('GET', KEYS[1])
if not holder then return {0} end
if holder ~= id then return {-1, redis.call('PTTL', KEYS[1]), holder} end

local left = redis.call('PTTL', KEYS[1])
if ARGV[5] and left >= 0 and left <= tonumber(ARGV[5]) then return {0} end

local waiters = redis.call('ZCARD', KEYS[2])
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local mark = whole(redis.call('GET', KEYS[3]), 1)
--@paste common/steps/raise_ceiling.lua
-- The lease comes first: a full server accepts it, and then the fence.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(left, lease)))
local now_text = string.format('%.0f', now_us)
--@paste common/steps/remember_token.lua KEYS[4]=KEYS[3]
return {1, '', '', '', mark, waiters}
