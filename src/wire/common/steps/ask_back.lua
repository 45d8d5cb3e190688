-- Step: asks the holders in `marked` for the lock, if the caller is the first waiter; or if it does not wait, nobody
-- waits, and no other holder is in its way (`alone`). Sets is_kept: the caller may hope for the lock soon.
if #marked > 0 and (channel ~= '' or alone) then
    -- Waiters that missed two polls must not stay before those who can ask: one that was only unreachable comes back
    -- with its ticket.
    local dropped, first, wants = false, first_waiter()
    while first and first ~= id and not (wants and now_us - wants.seen_us <= 2000 * wants.interval_ms) do
        leave_queue(first)
        dropped, first, wants = true, first_waiter()
    end
    if dropped and first and first ~= id then hurry_first_waiter(-1) end
    if first == (channel ~= '' and id or nil) then
        is_kept = alone
        -- One message for each client, on its own channel or (two leading zeros) on the one of the lock's slot.
        local texts, channels = {}, {}
        for _, who in ipairs(marked) do
            local client, tag = string.sub(who, 1, 19), string.match(KEYS[1], '^[^{]*{([^}]+)}') or KEYS[1]
            local its_channel = 'hf:wake:' .. (string.byte(who, 22) == 48 and '{' .. tag .. '}:' or '') .. client
            if not texts[its_channel] then channels[#channels + 1] = its_channel end
            texts[its_channel] = (texts[its_channel] or 'wanted') .. ' ' .. who
        end
        for _, its_channel in ipairs(channels) do tell(its_channel, texts[its_channel]) end
    end
end
