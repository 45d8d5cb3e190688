-- Shared by the scripts that know watchers: the field `watch` of the hash KEYS[3], one text for all watchers of the lock:
--   for each of them: until when it is to be told, in us; its hold id; the length of its channel; its channel
-- They are no waiters: the field is an entry among the waiters that is not in the queue. So every fast path that asks
-- whether anybody waits finds it, and a lock that nobody watches costs no call more.

-- for from, till, until_us, who, channel in each_watcher(text) do ...: where it stands in the text, and what it says.
local function each_watcher(text)
    local at = 1
    return function()
        local from = at
        local until_us, who, size, begins = string.match(text, '^(%d+) (%S+) (%d+) ()', at)
        if not begins then return nil end
        at = begins + tonumber(size)
        return from, at - 1, tonumber(until_us), who, string.sub(text, begins, at - 1)
    end
end
