-- Shared by the scripts that use the queue: a waiter's entry in the hash KEYS[3], a text of six words:
--   lease ms, poll interval ms, server time of its last poll in us, token floor, what it wants (w to write, the only
--   word of a mutex; r to read; u to upgrade), wake-up channel
-- SET takes no lease like "007".

local entry_form = '^([1-9]%d*) (%d+) (%d+) (%d+) ([wru]) (.+)$'

-- The waiter polls now.
local function entry_text(lease, interval, now, floor, wants, channel)
    return lease .. ' ' .. interval .. ' ' .. now .. ' ' .. floor .. ' ' .. wants .. ' ' .. channel
end
