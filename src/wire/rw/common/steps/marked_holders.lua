-- Step: the marked holders other than the caller, and whether there are no other holders. Of many readers it takes a
-- part, and another one at each poll: the rest learn from their renewals that somebody waits.
local marked, alone = {}, true
if writer and writer ~= id then
    if is_marked(writer) then marked[1] = writer end
elseif leases > 0 then
    local most, others = 32, 0
    local from = leases > most and now_us % (leases - most + 1) or 0
    for _, who in ipairs(redis.call('ZRANGE', KEYS[5], from, from + most - 1)) do
        if who ~= id then others = others + 1 end
        if who ~= id and is_marked(who) then append(marked, who) end
    end
    alone = #marked == others and leases <= most and not foreign
end
