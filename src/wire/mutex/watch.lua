-- mutex/watch: tell who holds the lock, and from now on tell the caller of every change; or stop telling it.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 notes
-- ARGV  1 hold id of the watcher  2 wake-up channel, empty: it watches no longer  3 ms for which it is to be told
-- Returns  {1, holder, holder's ms left, last token, note} held (ms left -1: no expiry; token 0: not known)
--          {0, last token} free
--          {1, ..., note, 'untold'}, {0, last token, 'untold'} the same, but the watcher receives no messages, because the
--              server is full or there are too many watchers: it must call more often
-- Repeatable. The watcher calls it again before half of its time is over and after each `changed` message; the answer is
-- the new state. While somebody watches, the token of a hold does not expire before the hold.
--@include common/watchers.lua

local id, channel, ms = ARGV[1], ARGV[2], whole(ARGV[3], 1)
if not (ms and string.find(id, '^%S+$')) then return redis.error_reply('ERR holdfast: id or time out of range') end
local holder = redis.call('GET', KEYS[1])
local mark = redis.call('GET', KEYS[4])
mark = whole(mark, 1) and mark
local there = redis.call('HGET', KEYS[3], 'watch') or ''
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]

-- The caller is written down without another look at all the others, who ask at the same time.
local is_told = channel ~= '' and channel ~= '-'
local mine, untold = ' ' .. id .. ' ' .. #channel .. ' ' .. channel, nil
local found = is_told and #there <= longest_field and string.find(there, mine, 1, true)
local until_us = found and whole(string.match(string.sub(there, math.max(found - 16, 1), found - 1), '%d+$'), 0) or 0
local is_there = 2 * (until_us - now_us) > ms * 1000 and until_us - now_us <= ms * 1000

if not is_there and (is_told or string.find(there, ' ' .. id .. ' ', 1, true)) then
    local others, size = {}, 0
    for from, till, ends_us, who in each_watcher(there) do
        if who ~= id and ends_us > now_us then
            others[#others + 1] = string.sub(there, from, till)
            size = size + till + 1 - from
        end
    end
    if is_told then
        until_us = now_us + ms * 1000
        mine = string.format('%016.0f', until_us) .. mine
        untold = size + #mine > longest_field and 'untold' or nil
        if not untold then others[#others + 1] = mine end
    end
    local all = table.concat(others)
    if all == '' then
        redis.call('HDEL', KEYS[3], 'watch')
    elseif all ~= there then
        local is_written = type(redis.pcall('HSET', KEYS[3], 'watch', all)) == 'number'
        if is_told and not is_written then untold = 'untold' end
    end
end
if is_told and not untold and 1000 * redis.call('PTTL', KEYS[3]) < until_us - now_us then
    redis.call('PEXPIRE', KEYS[3], string.format('%.0f', math.ceil((until_us - now_us) / 1000)))
end

if not holder then return {0, mark or '0', untold} end
if mark and redis.call('PTTL', KEYS[4]) < ms then redis.call('PEXPIRE', KEYS[4], ARGV[3]) end
local note = redis.pcall('HGET', KEYS[5], holder)
return {1, holder, redis.call('PTTL', KEYS[1]), mark or '0', type(note) == 'string' and note or '', untold}
