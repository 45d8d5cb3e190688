-- Shared by the read-write scripts that acquire: the key of the notes, and who holds the lock.
local notes
if KEYS[8] then
    notes = {
        read = function(who) return redis.pcall('HGET', KEYS[8], who) end,
        write = function(text) return redis.pcall('HSET', KEYS[8], id, text) end,
        remove = function(who) redis.call('HDEL', KEYS[8], who) end,
        all = function() return redis.call('HGETALL', KEYS[8]) end,
        count = function() return redis.call('HLEN', KEYS[8]) end,
        left_ms = function() return redis.call('PTTL', KEYS[8]) end,
        expire_in = function(ms) redis.call('PEXPIRE', KEYS[8], string.format('%.0f', ms)) end,
        holders = function() return redis.call('ZCARD', KEYS[5]) end,
        is_holder = function(who) return redis.call('ZSCORE', KEYS[5], who) end
    }
end
--@include common/notes.lua
