-- Shared by the scripts that serve a queue: the gap, a time in which the lock's key stays free for other programs.
--
-- Other programs poll for the key, and a hand-over never frees it: a busy queue of ours would keep them out for ever.
-- So where they share the key (keys::raw), a release that ends a turn frees the key. The queue is served when the gap
-- is over, or when a program that acquired the lock in the gap has released it.
--
-- Turns are slices of the server's clock: a release ends a turn if its grant was made in an earlier slice. The longer
-- no holder of another program was seen, the longer are the turns and the shorter the gaps. They start at `yield_after`
-- (say 50 ms) and end at a gap of a sixth of it after eight times as much, which costs our clients less than 3 %.
--
-- The script has set: has_gap (false: no other program uses the lock), read_gap and write_gap. The key holds
-- "<beginning of the gap> <its end> <when a holder of another program was last seen>", in us.

local longest_gap_us = 1000000
local gap_begins_us, gap_ends_us, foreign_seen_us = 0, 0, 0
if has_gap then
    local begins, ends, seen = string.match(read_gap() or '', '^(%d+) (%d+) (%d+)$')
    gap_begins_us, gap_ends_us, foreign_seen_us = whole(begins, 0) or 0, whole(ends, 0) or 0, whole(seen, 0) or 0
    -- The clock was set back, the key came from a member whose clock is ahead, or another program wrote it.
    if gap_begins_us > now_us or gap_ends_us - gap_begins_us > longest_gap_us then gap_ends_us = 0 end
    if foreign_seen_us > now_us then foreign_seen_us = 0 end
end

-- 0: there is no gap.
local function gap_left_ms() return math.max(math.ceil((gap_ends_us - now_us) / 1000), 0) end

-- If a full server or a moving slot refuses this, other programs lose a turn, and nothing else happens.
local function remember_gap()
    local text = string.format('%.0f %.0f %.0f', gap_begins_us, gap_ends_us, foreign_seen_us)
    write_gap(text)
end

local function saw_foreign_holder()
    foreign_seen_us = now_us
    remember_gap()
end

-- The length in us of the gap that is due after a grant with that token, or nil.
local function gap_due(token, yield_after_ms)
    if not (has_gap and token and yield_after_ms) then return nil end
    local turn_us = yield_after_ms * 1000
    local turns = math.min(math.max(math.floor((now_us - foreign_seen_us) / (20 * turn_us)), 1), 8)
    local slice_us = turns * turn_us
    if math.floor(token / slice_us) == math.floor(now_us / slice_us) then return nil end
    return math.min(turn_us, turn_us * 4 / (3 * turns))
end

-- The first living waiter serves the queue when the gap is over; nil if there is none. Dead waiters are dropped, and so
-- is an upgrade, because nobody holds the lock any more.
local function first_living_waiter()
    while true do
        local first, wants = first_waiter()
        if not first or wants and wants.kind ~= 'u' and is_alive(wants) then return first, wants end
        leave_queue(first)
    end
end

-- Called after the key was freed.
local function begin_gap(length_us, first, wants)
    gap_begins_us, gap_ends_us = now_us, now_us + length_us
    remember_gap()
    tell(wants.channel, 'poll ' .. first)
end
