-- Shared by the fast paths of rw/acquire and rw/release: whether the leases agree with the hash.
--
-- They agree if there are as many leases as holders, all of ours, none is over, and the hash expires with the last of
-- them: then no other program has set its expiry, and it did not come from another clock.
--
-- The script has set: holders, 0 if the hash has another form. It has declared now_us and now_text.
local latest = {} -- the last two leases, or the only one: id, deadline
local agree = false
if holders > 0 then
    latest = redis.call('ZRANGE', KEYS[5], math.max(holders - 2, 0), -1, 'WITHSCORES')
--@paste common/steps/read_clock.lua
    local hash_left_ms = redis.call('PTTL', KEYS[1])
    if #latest == math.min(2 * holders, 4) then
        local first, foreign = latest[2], latest[1] == 'foreign' or latest[3] == 'foreign'
        if holders > 2 then
            first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
            foreign = redis.call('ZSCORE', KEYS[5], 'foreign')
        end
        -- As ends_with() in deadlines.lua; but if a millisecond began between the two readings, the general path
        -- decides.
        local now_ms = math.floor(now_us / 1000)
        local measured_after_ms = latest[#latest] - hash_left_ms - now_ms
        agree = not foreign and tonumber(first) > now_ms and (measured_after_ms == 0 or measured_after_ms == -1)
    end
end
