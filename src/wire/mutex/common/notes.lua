-- Shared by the mutex scripts that acquire: the key of the notes, and who holds the lock.
local notes
if KEYS[6] then
    notes = {
        read = function(who) return redis.pcall('HGET', KEYS[6], who) end,
        write = function(text) return redis.pcall('HSET', KEYS[6], id, text) end,
        remove = function(who) redis.call('HDEL', KEYS[6], who) end,
        all = function() return redis.call('HGETALL', KEYS[6]) end,
        count = function() return redis.call('HLEN', KEYS[6]) end,
        left_ms = function() return redis.call('PTTL', KEYS[6]) end,
        expire_in = function(ms) redis.call('PEXPIRE', KEYS[6], string.format('%.0f', ms)) end,
        holders = function() return 1 end,
        is_holder = function(who) return who == holder end
    }
end
--@include common/notes.lua
