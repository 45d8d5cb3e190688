-- Shared by the scripts that know watchers: the field `watch` of the hash KEYS[3], one text for all watchers of the lock:
--   for each of them: until when it is to be told, in us, 16 digits; its hold id; the length of its channel; its channel
-- They are no waiters: the field is an entry among the waiters that is not in the queue. So every fast path that asks
-- whether anybody waits finds it, and a lock that nobody watches costs no call more.
--
-- Every change reads the field, and so does every watcher then. So it has a bound, and a longer one is not ours.
--@include common/numbers.lua

local longest_field = 65536

-- for from, till, until_us, who, channel in each_watcher(text) do ...: where it stands in the text, and what it says.
-- Ends where the text makes no sense.
local function each_watcher(text)
    local at = #text <= longest_field and 1 or #text + 1
    return function()
        local from = at
        local until_us, who, size, begins = string.match(text, '^(%d+) (%S+) (%d+) ()', at)
        until_us, size = whole(until_us, 0), whole(size, 0)
        if not (until_us and size and begins + size <= #text + 1) then return nil end
        at = begins + size
        return from, at - 1, until_us, who, string.sub(text, begins, at - 1)
    end
end
