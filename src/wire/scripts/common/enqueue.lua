-- Shared by the scripts that acquire: taking a place in the queue, or keeping the one that is there.

-- Of this server, for a caller that has several and goes by the middle one of their clocks. A token tells no time: it may
-- be one more than the last.
local function clock_told() return proposal and string.format('%.0f', now_us) or nil end

-- Never shortens: a foreign program, a longer earlier lease or a more patient waiter may have given it more.
local function keep_for(key, ms)
    if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, string.format('%.0f', ms)) end
end

-- Places `in_front` come before all others, in the order of their tickets among themselves: their scores are negative.
-- A full server does not refuse the poll of one who has its place already: it lets a script pass whose first write
-- removes something, if only nothing. Returns the ticket.
local function enqueue(id, ticket, entry, keep_ms, in_front)
    local before_everybody = 9007199254740992
    local place = tonumber(redis.call('ZSCORE', KEYS[2], id))
    if ticket == '0' then
        local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
        local mine = place and place < 0 and place + before_everybody or place
        ticket = string.format('%.0f', mine or math.max(now_us, last + 1))
    end
    if place then redis.call('HDEL', KEYS[3], '') end
    -- Entries without a queue: it was evicted, and nobody would ever remove them.
    if queued == 0 and entries > 0 then entries = redis.call('DEL', KEYS[3]) - 1 end
    local score = string.format('%.0f', in_front and ticket - before_everybody or ticket)
    queued = queued + redis.call('ZADD', KEYS[2], score, id)
    entries = entries + redis.call('HSET', KEYS[3], id, entry)
    keep_for(KEYS[2], keep_ms)
    keep_for(KEYS[3], keep_ms)
    return ticket
end
