-- Shared by rw/acquire and rw/release, where they look for a common case: whether the leases say what the hash says.
-- There are as many as holders, all of ours; none of them is over; and the hash ends with the last of them, as we left
-- it: so no other program has set its expiry, and it has not come from another clock.
--
-- The script has set: holders, which is 0 if the hash is not plain.
local latest = {}   -- the last two leases, or the only one: who, until when
local clock         -- the server's time, if there are holders
local agree = false
if holders > 0 then
    latest = redis.call('ZRANGE', KEYS[5], math.max(holders - 2, 0), -1, 'WITHSCORES')
    clock = redis.call('TIME')
    local hash_left_ms = redis.call('PTTL', KEYS[1])
    if #latest == math.min(2 * holders, 4) then
        local first, foreign = latest[2], latest[1] == 'foreign' or latest[3] == 'foreign'
        if holders > 2 then
            first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
            foreign = redis.call('ZSCORE', KEYS[5], 'foreign')
        end
        -- As ends_with() in deadlines.lua has it; but if a millisecond began between the two looks, that is left to it.
        local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
        local measured_after_ms = latest[#latest] - hash_left_ms - now_ms
        agree = not foreign and tonumber(first) > now_ms and (measured_after_ms == 0 or measured_after_ms == -1)
    end
end
