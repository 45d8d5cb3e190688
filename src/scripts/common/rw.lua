-- Shared by the read-write scripts: who holds the lock, and until when.
--
-- KEYS[1] is the lock as other programs know it too: a hash with mode, rcount, r:<id>, writer, wcount. KEYS[5] has every
-- holder's own deadline, the first ms in which its hold is over; KEYS[6] what was granted to it. A count of ours in the
-- hash is always 1: how often an owner entered is the owner's business.
--
-- Whatever is added is collected here and written by settle(), once, however many come in; what is taken away goes at
-- once, and so before it: a full server refuses a script whose first write adds something. How many fields and leases
-- are left is counted, because a key that was emptied is not touched again (see line.lua). Where the last holder leaves
-- and others come in, that cannot be: on a moving slot the script then stops in settle(). Whoever it was about to let
-- in has a field without a lease or nothing at all, which is as good as nothing, and is still in line.
--
-- The script has set: id, retention, prefer.
local now_ms = math.floor(now_us / 1000)
--@include common/grant_text.lua
--@include common/deadlines.lua

local newest = redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')
local remembered = redis.call('ZSCORE', KEYS[5], 'foreign')
local leases = redis.call('ZCARD', KEYS[5])
local hash_left_ms = redis.call('PTTL', KEYS[1])
local my_grant = redis.call('HGET', KEYS[6], id)
local writer, readers, rcount  -- the hash: who writes, how many fields of readers, the sum of their counts
local fields                   -- how many the hash has, of whatever kind
local mode_there, rcount_there -- as they are in the hash
local foreign                  -- holders of other programs: name, until_ms (nil: no end)
local touched = false          -- something is to be written by settle()
local others_changed           -- somebody was found dead, lost or missing: others may have their turn now
local placed, fresh_fields, fresh_leases, fresh_grants = {}, {}, {}, {}

local function look()
    local known = redis.call('HMGET', KEYS[1], 'mode', 'rcount', 'writer', 'wcount')
    mode_there, rcount_there, writer, rcount = known[1], known[2], known[3], whole(known[2], 0) or 0
    fields = redis.call('HLEN', KEYS[1])
    readers = fields
    for i = 1, 4 do
        if known[i] then readers = readers - 1 end
    end
end

local function reads(who) return placed[who] or redis.call('HEXISTS', KEYS[1], 'r:' .. who) == 1 end

local function stop_writing()
    fields = fields - redis.call('HDEL', KEYS[1], 'writer', 'wcount')
    writer, touched = false, true
end

local function stop_reading(who)
    if fields == 0 or redis.call('HDEL', KEYS[1], 'r:' .. who) == 0 then return end
    fields, readers, rcount, touched = fields - 1, readers - 1, rcount - 1, true
end

local function remove(who)
    stop_reading(who)
    if writer == who then stop_writing() end
    if leases > 0 then leases = leases - redis.call('ZREM', KEYS[5], who) end
    redis.call('HDEL', KEYS[6], who)
    touched = true
end

-- Puts `who` into the hash in that shape.
local function place(who, shape)
    if shape ~= 'w' and not reads(who) then
        readers, rcount, placed[who] = readers + 1, rcount + 1, true
        append(fresh_fields, 'r:' .. who, 1)
    end
    if shape ~= 'r' and writer ~= who then
        writer = who
        append(fresh_fields, 'writer', who, 'wcount', 1)
    end
    touched = true
end

-- Makes `who` a holder, or changes what it holds.
local function admit(who, shape, lease, token)
    place(who, shape)
    append(fresh_leases, string.format('%.0f', now_ms + lease), who)
    append(fresh_grants, who, shape .. ' ' .. token)
end

-- The caller keeps its grant, in that shape, with a full lease. Removing nothing is a write that a full server lets
-- pass: so those who hold keep what they have. The lease itself is never taken away to be written anew: where a Cluster
-- moves the slot, the script would end in between if it is the only one.
local function refresh(shape, lease)
    local ends, token = redis.call('ZSCORE', KEYS[5], id), token_of(my_grant)
    redis.call('ZREM', KEYS[5], '')
    place(id, shape)
    append(fresh_leases, string.format('%.0f', math.max(now_ms + lease, ends or 0)), id)
    if shape ~= shape_of(my_grant) then append(fresh_grants, id, shape .. ' ' .. token) end
    my_grant = shape .. ' ' .. token
end

-- Nobody has it any more. Whether a grant is left that belongs to nobody is not known, and mostly there is none: then
-- that call fails on a moving slot, and has nothing to do.
local function clear()
    if fields > 0 then redis.call('DEL', KEYS[1]) end
    if leases > 0 then redis.call('DEL', KEYS[5]) end
    redis.pcall('DEL', KEYS[6])
    fields, leases, mode_there, rcount_there = 0, 0, false, false
end

-- Writes what has changed. The keys live as long as the longest lease. GT: a shorter lease never cuts a longer one.
local function settle()
    if not touched then return end
    touched = false
    if not writer and readers == 0 then return clear() end
    local mode, count = writer and 'write' or 'read', readers > 0 and string.format('%.0f', rcount)
    if not count and rcount_there then fields = fields - redis.call('HDEL', KEYS[1], 'rcount') end
    if count and count ~= rcount_there then append(fresh_fields, 'rcount', count) end
    if mode ~= mode_there then append(fresh_fields, 'mode', mode) end
    mode_there, rcount_there = mode, count
    fields = fields + write_all({'HSET', KEYS[1]}, fresh_fields)
    if foreign and foreign.until_ms then append(fresh_leases, string.format('%.0f', foreign.until_ms), 'foreign') end
    leases = leases + write_all({'ZADD', KEYS[5], 'GT'}, fresh_leases)
    write_all({'HSET', KEYS[6]}, fresh_grants)
    fresh_fields, fresh_leases, fresh_grants = {}, {}, {}
    local last = leases > 0 and redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
    last = last and string.format('%.0f', last) -- newer servers write 1.8e+12
    if last and not (foreign and not foreign.until_ms) then redis.call('PEXPIREAT', KEYS[1], last) end
    if last then
        redis.call('PEXPIREAT', KEYS[5], last)
        redis.call('PEXPIREAT', KEYS[6], last)
    end
end

-- By its form, which is that of our hold ids: hf_<client, 16 characters>.<number>.<22 random characters>.
local function is_ours(who)
    local client, random = string.match(who, '^hf_([%w_%-]+)%.%d+%.([%w_%-]+)$')
    return client and #client == 16 and #random == 22
end

-- Who is in the hash without a lease: the id and the field. Ours are dead, and removed; the others are returned.
local function strangers()
    local found, fields = {}, redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
        local field = fields[i]
        if field ~= 'mode' and field ~= 'rcount' and field ~= 'wcount' then
            local who = field == 'writer' and fields[i + 1] or string.match(field, '^r:(.*)$') or field
            if not is_ours(who) then
                append(found, {who = who, field = field})
            elseif not redis.call('ZSCORE', KEYS[5], who) then
                remove(who)
            end
        end
    end
    return found
end

-- True if the hash expires when we said it should: with the last lease. If not, another program has set its expiry
-- since.
local function expires_as_we_left_it() return ends_with(newest[2], hash_left_ms) end

-- How long holders of other programs live: by the hash's own expiry, as it stood before we made it longer; that is
-- remembered under the name `foreign`. A key lives through the ms of its expiry, hence one more.
local function foreign_end()
    if hash_left_ms < 0 then return nil end
    if remembered and expires_as_we_left_it() then return tonumber(remembered) end
    return math.max(now_ms + hash_left_ms + 1, remembered or 0)
end

-- The hash and the leases disagree: another program has written the hash, or it is gone (evicted, or an expiry was set
-- that was shorter than our leases). Holders of other programs are respected as long as they live; ours are put back
-- where they belong if nobody who is in now forbids it, and otherwise lost.
local function reconcile()
    local others = strangers()
    if #others > 0 then
        local ends = foreign_end()
        if ends and ends <= now_ms then
            for _, other in ipairs(others) do
                redis.call('HDEL', KEYS[1], other.field)
                if other.field == 'writer' then redis.call('HDEL', KEYS[1], 'wcount') end
            end
            touched = true
        else
            foreign = {name = others[1].who, until_ms = ends}
        end
    end
    look()
    rcount = 0
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
        if string.find(fields[i], '^r:') then rcount = rcount + (whole(fields[i + 1], 1) or 1) end
    end
    for _, who in ipairs(redis.call('ZRANGE', KEYS[5], 0, -1)) do
        local shape = who ~= 'foreign' and shape_of(redis.call('HGET', KEYS[6], who))
        local there = shape and (shape == 'w' or reads(who)) and (shape == 'r' or writer == who)
        if who ~= 'foreign' and not there then
            local in_the_way = writer and writer ~= who or shape ~= 'r' and readers > (reads(who) and 1 or 0)
            if in_the_way or not shape then remove(who) else place(who, shape) end
        end
    end
end

look()

-- The first script after a move to a member whose clock is ahead puts all deadlines right, before it goes by them. That
-- is one call more where the hash is not as we left it, and none where it is.
local expiry_moved = newest[1] and not expires_as_we_left_it()
if expiry_moved then
    local off = clock_ahead_by(KEYS[5], newest[2])
    if off > 0 then
        shift_deadlines(KEYS[5], off)
        newest[2], remembered = newest[2] + off, remembered and remembered + off
    end
end

-- Whoever's lease is over is out. The work is for those, not for those who stay. Nobody stays whose deadline is now: a
-- key that is told to expire now is deleted at once.
for _, who in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now_ms))) do
    if who ~= 'foreign' then remove(who) end
end

do
    local expected = leases - (remembered and 1 or 0)
    if writer and not reads(writer) then expected = expected - 1 end
    local disagree = readers ~= expected or expiry_moved
    if disagree then reconcile() end
    if remembered and not foreign then leases = leases - redis.call('ZREM', KEYS[5], 'foreign') end
    others_changed = touched
    touched = touched or expiry_moved or remembered and not foreign
    -- What is put back must be there before the script goes on: it may be about to take it away. Removing nothing is a
    -- write that a full server lets pass, and then the rest may follow: all of it was there before.
    if disagree and touched then
        redis.call('ZREM', KEYS[5], '')
        settle()
    end
end
if my_grant and not shape_of(my_grant) then remove(id) end
if my_grant and writer ~= id and not reads(id) then my_grant = false end

-- Who is in the way, apart from that one; how long that may last at most, and when the first of them may be gone.
-- -1: no end is known.
local function standing(apart_from)
    local first = leases > 0 and redis.call('ZRANGE', KEYS[5], 0, 1, 'WITHSCORES') or {}
    local last = leases > 0 and redis.call('ZRANGE', KEYS[5], -2, -1, 'WITHSCORES') or {}
    local soonest = tonumber(first[1] == apart_from and first[4] or first[2])
    local at = #last - 1
    if last[at] == apart_from then at = at - 2 end
    local longest = tonumber(last[at + 1])
    if foreign then
        local ends = foreign.until_ms
        soonest = ends and math.min(ends, soonest or ends) or soonest
        longest = ends and math.max(ends, longest or ends)
    end
    return longest and longest - now_ms or -1, writer or foreign and foreign.name or last[at] or '',
        soonest and math.max(soonest - now_ms, 0) or -1
end
