-- Shared by the read-write scripts: the holders, and their deadlines.
--
-- KEYS[1] is a hash that other programs use, too: mode, rcount, r:<id>, writer, wcount. KEYS[5] has every holder's own
-- deadline, the first ms in which its hold is over; KEYS[6] its grant. Our counts in the hash are always 1: the owner
-- itself counts how often it entered.
--
-- The script collects its changes of these keys, and settle() writes them once. It adds before it removes, so no key is
-- empty in between (see queue.lua for what that would do on a moving slot). If nobody is left, it deletes the keys and
-- does not touch them again.
--
-- A full server refuses a script whose first write adds something. A script that removes something, or only keeps or
-- restores what was there, must pass: it begins with a removal, if only of nothing (ZREM key '').
--
-- The script has set: id, retention, prefer.
local now_ms = math.floor(now_us / 1000)
--@include rw/common/grant_text.lua
--@include common/hold_id.lua
--@include common/deadlines.lua

local newest = newest_lease(function() return redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES') end,
    function(who) redis.call('ZREM', KEYS[5], who) end)
local remembered = redis.call('ZSCORE', KEYS[5], 'foreign')
local remembered_counts = remembered and redis.call('HGET', KEYS[6], 'foreign') or ''
local leases = redis.call('ZCARD', KEYS[5])
local hash_left_ms = redis.call('PTTL', KEYS[1])
local my_fields = redis.call('HMGET', KEYS[6], id, 'kept')
local my_grant, has_kept = my_fields[1], my_fields[2]
local writer, readers, rcount  -- the hash: who writes, how many fields of readers, the sum of their counts
local mode_there, rcount_there -- as they are in the hash
local foreign                  -- holders of other programs: name, until_ms (nil: no end)
local touched = false          -- settle() has something to write
local must_pass = false        -- a full server must accept it, too
local others_changed           -- somebody was dead, lost or missing: the queue may have to be served
local somebody_left = false    -- a holder of ours left: perhaps only other programs hold it now
local my_lost_grant            -- the caller's grant without its mark, if it is lost; then my_grant is false
local cut_ms                   -- the TTL of the hash, if another program made it shorter than our leases
local reading = {}             -- id -> whether it reads, as far as it is known

-- The changes of one key: field or member -> its new value, or false to remove it.
local function no_changes() return {names = {}, values = {}} end
local hash_changes, lease_changes, grant_changes = no_changes(), no_changes(), no_changes()

local function change(changes, name, value)
    if changes.values[name] == nil then changes.names[#changes.names + 1] = name end
    changes.values[name] = value
end

-- As it will be when this script ends.
local function grant_of(who)
    local changed = grant_changes.values[who]
    if changed ~= nil then return changed end
    return redis.call('HGET', KEYS[6], who)
end

local function look()
    local known = redis.call('HMGET', KEYS[1], 'mode', 'rcount', 'writer', 'wcount')
    mode_there, rcount_there, writer, rcount = known[1], known[2], known[3], whole(known[2], 0) or 0
    readers = redis.call('HLEN', KEYS[1])
    for i = 1, 4 do
        if known[i] then readers = readers - 1 end
    end
end

local function reads(who)
    if reading[who] == nil then reading[who] = readers > 0 and redis.call('HEXISTS', KEYS[1], 'r:' .. who) == 1 end
    return reading[who]
end

local function stop_writing()
    change(hash_changes, 'writer', false)
    change(hash_changes, 'wcount', false)
    writer, touched, must_pass = false, true, true
end

local function stop_reading(who)
    if not reads(who) then return end
    change(hash_changes, 'r:' .. who, false)
    readers, rcount, reading[who] = readers - 1, rcount - 1, false
    touched, must_pass = true, true
end

local function remove(who)
    stop_reading(who)
    if writer == who then stop_writing() end
    change(lease_changes, who, false)
    change(grant_changes, who, false)
    touched, must_pass, somebody_left = true, true, true
end

-- Puts `who` into the hash with that shape.
local function set_shape(who, shape)
    if shape ~= 'w' and not reads(who) then
        readers, rcount, reading[who] = readers + 1, rcount + 1, true
        change(hash_changes, 'r:' .. who, 1)
    end
    if shape ~= 'r' and writer ~= who then
        writer = who
        change(hash_changes, 'writer', who)
        change(hash_changes, 'wcount', 1)
    end
    touched = true
end

-- Never shortens a lease.
local function extend(who, lease)
    change(lease_changes, who, math.max(now_ms + lease, lease_changes.values[who] or 0))
end

-- Makes `who` a holder, or changes its hold.
local function admit(who, shape, lease, token)
    set_shape(who, shape)
    extend(who, lease)
    change(grant_changes, who, shape .. ' ' .. token)
    if not has_kept and is_marked(who) then change(grant_changes, 'kept', '1') end
end

-- The caller keeps its grant with that shape and a full lease. A lost grant stays lost.
local function refresh(shape, lease)
    local token = token_of(my_grant)
    must_pass = true
    set_shape(id, shape)
    extend(id, lease)
    if shape ~= shape_of(my_grant) then
        change(grant_changes, id, shape .. ' ' .. token .. (my_lost_grant and ' lost' or ''))
    end
    my_grant = shape .. ' ' .. token
    if not has_kept and is_marked(id) then change(grant_changes, 'kept', '1') end
end

-- What to set, in the order that its command takes, and what to remove.
local function sort_out(changes, in_pairs)
    local set, gone = {}, {}
    for _, name in ipairs(changes.names) do
        local value = changes.values[name]
        if value then
            set[#set + 1], set[#set + 2] = in_pairs(name, value)
        else
            gone[#gone + 1] = name
        end
    end
    return set, gone
end
local function field_and_value(name, value) return name, value end
local function score_and_member(name, value) return string.format('%.0f', value), name end

-- Nobody holds it any more.
local function clear()
    redis.call('DEL', KEYS[1], KEYS[5], KEYS[6])
    leases, mode_there, rcount_there = 0, false, false
end

-- The keys live as long as the longest lease; the hash without end, if a holder of another program has no end. A hash
-- that another program's writer holds alone is left to that program: our leases are then only those of lost holds.
local function expire_with_the_last_lease()
    local last = leases > 0 and redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
    if not last then return end
    last = string.format('%.0f', last) -- newer servers answer 1.8e+12
    local is_theirs = foreign and (not foreign.until_ms or writer and not is_ours(writer))
    if not is_theirs then redis.call('PEXPIREAT', KEYS[1], last) end
    redis.call('PEXPIREAT', KEYS[5], last)
    redis.call('PEXPIREAT', KEYS[6], last)
end

-- GT: a shorter lease never cuts a longer one. Leases that end go first if others stay: a full server accepts that, and
-- then the rest. The last grant may go while leases of other programs stay, so grants are removed at the end.
local function remove_leases(...) return redis.call('ZREM', KEYS[5], ...) end
local function write_changes()
    local fields, fields_gone = sort_out(hash_changes, field_and_value)
    local deadlines, ended = sort_out(lease_changes, score_and_member)
    local grants, grants_gone = sort_out(grant_changes, field_and_value)
    if #ended > 0 and leases > #ended then
        leases = leases - write_all(ended, remove_leases)
        ended = {}
    elseif must_pass then
        redis.call('ZREM', KEYS[5], '')
    end
    write_all(fields, function(...) return redis.call('HSET', KEYS[1], ...) end)
    write_all(fields_gone, function(...) return redis.call('HDEL', KEYS[1], ...) end)
    leases = leases + write_all(deadlines, function(...) return redis.call('ZADD', KEYS[5], 'GT', ...) end)
    leases = leases - write_all(ended, remove_leases)
    write_all(grants, function(...) return redis.call('HSET', KEYS[6], ...) end)
    expire_with_the_last_lease()
    write_all(grants_gone, function(...) return redis.call('HDEL', KEYS[6], ...) end)
end

-- Writes the changes.
local function settle()
    if not touched then return end
    local mode, count = writer and 'write' or 'read', readers > 0 and string.format('%.0f', rcount)
    if not writer and readers == 0 then
        clear()
    else
        if mode ~= mode_there then change(hash_changes, 'mode', mode) end
        if count ~= rcount_there then change(hash_changes, 'rcount', count) end
        if foreign and foreign.until_ms then
            change(lease_changes, 'foreign', foreign.until_ms)
            if foreign.counts ~= remembered_counts then change(grant_changes, 'foreign', foreign.counts) end
        end
        mode_there, rcount_there = mode, count
        write_changes()
    end
    touched, must_pass = false, false
    hash_changes, lease_changes, grant_changes = no_changes(), no_changes(), no_changes()
end

-- What the hash looks like, if it does not have the form that we share with other programs; otherwise nil.
local function unknown_form(fields)
    for i = 1, #fields, 2 do
        local field = fields[i]
        if string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+') then return 'what looks like a Redisson lock' end
        local known = field == 'mode' or field == 'rcount' or field == 'writer' or field == 'wcount'
        if not known and not string.find(field, '^r:') then return 'a hash that is no lock of a known form' end
    end
    return nil
end

-- All fields of the hash, if hash and leases disagree; and what it looks like, if it is no lock like ours.
local fields, unknown
local function look_closely()
    fields = fields or redis.call('HGETALL', KEYS[1])
    unknown = unknown_form(fields)
end
local function refuse_unknown() return redis.error_reply('WRONGTYPE the key holds ' .. unknown) end

-- The ids, fields and counts in the hash without a lease. Ours are dead and are removed; the others are returned.
local function foreign_fields()
    local found = {}
    for i = 1, #fields, 2 do
        local field = fields[i]
        local leaves = hash_changes.values[field] == false
        if field ~= 'mode' and field ~= 'rcount' and field ~= 'wcount' and not leaves then
            local who = field == 'writer' and fields[i + 1] or string.match(field, '^r:(.*)$')
            if not is_ours(who) then
                local writes = field == 'writer'
                append(found, {who = who, field = field, name = writes and 'writer ' .. who or field,
                    count = not writes and whole(fields[i + 1], 1) or 1})
            elseif not redis.call('ZSCORE', KEYS[5], who) then
                remove(who)
            end
        end
    end
    return found
end

-- True if the hash expires with the last lease, as our scripts set it. If not, another program set its expiry since.
local function expires_as_we_left_it() return ends_with(newest[2], hash_left_ms) end

-- The names of other programs' holders and their counts, as the grants remember them beside the member `foreign`: for
-- each "<length of the name>:<count>:<name>". A name may have any characters.
local function counts_of(others)
    local counts = {}
    for _, other in ipairs(others) do
        append(counts, #other.name .. ':' .. string.format('%.0f', other.count) .. ':' .. other.name)
    end
    table.sort(counts)
    return table.concat(counts)
end

-- True if one of them entered since our scripts set the expiry of the hash: it may have set the same one by chance.
local function somebody_entered(others)
    local known, at = {}, 1
    while at do
        local size, count, name = string.match(remembered_counts, '^(%d+):(%d+):()', at)
        at = size and name + size
        if size then known[string.sub(remembered_counts, name, at - 1)] = tonumber(count) end
    end
    for _, other in ipairs(others) do
        if other.count > (known[other.name] or 0) then return true end
    end
    return false
end

-- When the holders of other programs end: with the hash's own expiry, as it was before we made it longer, which the
-- member `foreign` remembers. A key lives through the ms of its expiry, hence one more.
local function foreign_end(others)
    if hash_left_ms < 0 then return nil end
    if remembered and expires_as_we_left_it() and not somebody_entered(others) then return tonumber(remembered) end
    return math.max(now_ms + hash_left_ms + 1, remembered or 0)
end

-- Counts the holders by the fields of the hash, without those that are to be removed.
local function count_again()
    writer, readers, rcount = false, 0, 0
    for i = 1, #fields, 2 do
        local field, value = fields[i], fields[i + 1]
        if hash_changes.values[field] == false or field == 'mode' or field == 'rcount' or field == 'wcount' then
            -- not a holder
        elseif field == 'writer' then
            writer = value
        else
            readers = readers + 1
            rcount = rcount + (whole(value, 1) or 1)
        end
    end
end

-- A hold of ours whose lease runs, and that is not in the hash as it was granted. Nobody knows who else was in the hash
-- meanwhile: so it is lost, and its holder learns that at its next renewal or release. Until then the holder believes
-- in it. So the script restores it if nothing prevents that, and no other client of ours comes in. Beside a writer of
-- another program, which keeps everybody out, only its lease stays. A writer is not restored beside readers.
local function lose(who, grant)
    local sound = shape_of(grant) and grant or lost_grant(grant)
    local shape = shape_of(sound)
    local beside_writer = writer and writer ~= who
    local beside_readers = not beside_writer and shape ~= 'r' and readers > (reads(who) and 1 or 0)
    if not shape or beside_readers then return remove(who) end
    if sound == grant then
        change(grant_changes, who, grant .. ' lost')
        touched = true
        if who == id then my_grant = grant .. ' lost' end
    end
    if not beside_writer then set_shape(who, shape) end
end

-- The hash and the leases disagree: another program wrote the hash, or it is gone (evicted, or it had an expiry shorter
-- than our leases). Holders of other programs are respected as long as they live.
local function reconcile()
    local others = foreign_fields()
    if #others > 0 then
        local ends = foreign_end(others)
        if ends and ends <= now_ms then
            for _, other in ipairs(others) do
                change(hash_changes, other.field, false)
                if other.field == 'writer' then change(hash_changes, 'wcount', false) end
            end
            touched = true
        else
            foreign = {name = others[1].who, until_ms = ends, counts = counts_of(others)}
            touched = touched or remembered and ends and ends ~= tonumber(remembered)
        end
    end
    count_again()
    for _, who in ipairs(redis.call('ZRANGE', KEYS[5], 0, -1)) do
        if who ~= 'foreign' and lease_changes.values[who] ~= false then
            local grant = grant_of(who)
            local shape = shape_of(lost_grant(grant) or grant)
            local there = shape and (shape == 'w' or reads(who)) and (shape == 'r' or writer == who)
            if not there then lose(who, grant) end
        end
    end
end

look()

-- The first script after a move to a member whose clock is ahead corrects all deadlines before it uses them. That costs
-- one call if the hash does not expire as our scripts set it, and none otherwise.
local expiry_moved = newest[1] and not expires_as_we_left_it()
if expiry_moved then
    look_closely()
    if unknown then return refuse_unknown() end
    local off = clock_ahead_by(redis.call('PTTL', KEYS[5]), newest[2])
    if off > 0 then
        local moved = shifted(redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES'), off)
        redis.call('ZREM', KEYS[5], '') -- a full server accepts that, and then the others
        write_all(moved, function(...) return redis.call('ZADD', KEYS[5], ...) end)
        newest[2], remembered = newest[2] + off, remembered and remembered + off
    end
end
if hash_left_ms >= 0 and (not newest[1] or expiry_moved and now_ms + hash_left_ms < tonumber(newest[2])) then
    cut_ms = hash_left_ms
end

-- Removes the holds whose lease is over. The cost depends on their number, not on that of the others. A deadline of now
-- is over: a key that is set to expire now is deleted at once.
local over = 0
for _, who in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now_ms))) do
    if who ~= 'foreign' then
        remove(who)
        over = over + 1
    end
end

do
    local expected = leases - over - (remembered and 1 or 0)
    if writer and not reads(writer) then expected = expected - 1 end
    local disagree = readers ~= expected or expiry_moved or writer and not is_ours(writer)
    if disagree then look_closely() end
    if unknown then return refuse_unknown() end
    if disagree then reconcile() end
    others_changed = touched
    if remembered and not foreign then
        change(lease_changes, 'foreign', false)
        change(grant_changes, 'foreign', false)
        touched, must_pass = true, true
    end
    touched = touched or expiry_moved
    must_pass = must_pass or disagree and touched -- all that is restored was there before
end
if lease_changes.values[id] == false then
    my_grant = false -- its lease was over
elseif lost_grant(my_grant) then
    my_grant, my_lost_grant = false, lost_grant(my_grant)
elseif my_grant and not shape_of(my_grant) then
    remove(id)
end
if my_grant and writer ~= id and not reads(id) then my_grant = false end

-- Of the holders other than that one: the longest time left, a holder, and the time until the first may be gone.
-- -1: no end is known.
local function standing(apart_from)
    local first = leases > 0 and redis.call('ZRANGE', KEYS[5], 0, 1, 'WITHSCORES') or {}
    local last = leases > 0 and redis.call('ZRANGE', KEYS[5], -2, -1, 'WITHSCORES') or {}
    local soonest = tonumber(first[1] == apart_from and first[4] or first[2])
    local at = #last - 1
    if last[at] == apart_from then at = at - 2 end
    local longest = tonumber(last[at + 1])
    if not (writer or foreign or longest) and gap_left_ms() > 0 then return gap_left_ms(), '', gap_left_ms() end
    if foreign then
        local ends = foreign.until_ms
        soonest = ends and math.min(ends, soonest or ends) or soonest
        longest = ends and math.max(ends, longest or ends)
    end
    return longest and longest - now_ms or -1, writer or foreign and foreign.name or last[at] or '',
        soonest and math.max(soonest - now_ms, 0) or -1
end
