-- mutex/watch: tell who holds the lock, and from now on tell the caller of every change; or stop telling it.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 notes
-- ARGV  1 hold id of the watcher  2 wake-up channel, empty: it watches no longer  3 ms for which it is to be told
-- Returns  {1, holder, holder's ms left, last token, note} held (ms left -1: no expiry; token 0: not known)
--          {0, last token} free
-- Repeatable. The watcher calls it again before the time ends and after each `changed` message; the answer is the new
-- state.
-- A full server, or too many watchers: the watcher receives no messages and must call it more often.
--@include common/numbers.lua
--@include common/watchers.lua

local id, channel, ms = ARGV[1], ARGV[2], whole(ARGV[3], 1)
if not (ms and string.find(id, '^%S+$')) then return redis.error_reply('ERR holdfast: id or time out of range') end
local holder = redis.call('GET', KEYS[1])
local mark = whole(redis.call('GET', KEYS[4]), 1) and redis.call('GET', KEYS[4]) or '0'
local there = redis.call('HGET', KEYS[3], 'watch')
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]

local others, count = '', 0
for from, till, until_us, who in each_watcher(there or '') do
    if who ~= id and until_us > now_us and count < 1000 then
        others, count = others .. string.sub(there, from, till), count + 1
    end
end
if channel ~= '' and channel ~= '-' then
    local mine = string.format('%.0f', now_us + ms * 1000) .. ' ' .. id .. ' ' .. #channel .. ' ' .. channel
    redis.pcall('HSET', KEYS[3], 'watch', others .. mine)
    if redis.call('PTTL', KEYS[3]) < ms then redis.call('PEXPIRE', KEYS[3], ARGV[3]) end
elseif there and others == '' then
    redis.call('HDEL', KEYS[3], 'watch')
elseif there and others ~= there then
    redis.pcall('HSET', KEYS[3], 'watch', others)
end

if not holder then return {0, mark} end
local note = redis.pcall('HGET', KEYS[5], holder)
return {1, holder, redis.call('PTTL', KEYS[1]), mark, type(note) == 'string' and note or ''}
