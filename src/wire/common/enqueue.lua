-- Shared by the scripts that acquire: taking a position in the queue, or keeping it.

-- Never shortens an expiry: another program or a more patient waiter may have set a longer one.
local function keep_queue_for(ms)
    if redis.call('PTTL', KEYS[2]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[2], ms) end
    if redis.call('PTTL', KEYS[3]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[3], ms) end
end

-- A waiter `in_front` has a negative score, so it comes before all others; among themselves such waiters keep the order
-- of their tickets. A full server must accept the poll of a waiter that is in the queue already. It accepts a script
-- whose first write removes something, even if nothing is there to remove. Returns the ticket.
local function enqueue(id, ticket, entry, keep_ms, in_front)
    local before_everybody = 9007199254740992
    local score_there = tonumber(redis.call('ZSCORE', KEYS[2], id))
    if ticket == '0' then
        local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
        local mine = score_there and score_there < 0 and score_there + before_everybody or score_there
        ticket = string.format('%.0f', mine or math.max(now_us, last + 1))
    end
    if score_there then redis.call('HDEL', KEYS[3], '') end
    -- Entries without a queue: the queue was evicted, or expired while watchers (watchers.lua) kept the entries, and
    -- nobody else would remove them. The watchers stay, for as long as they are to be told.
    if queued == 0 and entries > 0 then
        local watchers, left = redis.call('HGET', KEYS[3], 'watch'), redis.call('PTTL', KEYS[3])
        entries = redis.call('DEL', KEYS[3]) - 1
        if watchers then
            redis.call('HSET', KEYS[3], 'watch', watchers)
            if left > 0 then redis.call('PEXPIRE', KEYS[3], left) end
        end
    end
    local score = string.format('%.0f', in_front and ticket - before_everybody or ticket)
    queued = queued + redis.call('ZADD', KEYS[2], score, id)
    entries = entries + redis.call('HSET', KEYS[3], id, entry)
    keep_queue_for(keep_ms)
    return ticket
end
