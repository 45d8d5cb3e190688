-- semaphore/tools/standing: what one hold has of a semaphore. Reads only.
-- KEYS  1 lock  2 leases
-- ARGV  1 hold id
-- Returns  {limit, end of its lease in ms, TIME}
-- TIME is part of the answer because the deadline goes by the clock of the server that keeps it.

return {redis.call('HGET', KEYS[1], 'limit'), redis.call('ZSCORE', KEYS[2], ARGV[1]), redis.call('TIME')}
