-- rw/tools/standing: what one hold has of a read-write lock. Reads only.
-- KEYS  1 lock  2 leases
-- ARGV  1 hold id
-- Returns  {{writer, how often the hold has entered to read}, end of its lease in ms, TIME}
-- TIME is part of the answer because the deadline goes by the clock of the server that keeps it.

return {redis.call('HMGET', KEYS[1], 'writer', 'r:' .. ARGV[1]), redis.call('ZSCORE', KEYS[2], ARGV[1]),
    redis.call('TIME')}
