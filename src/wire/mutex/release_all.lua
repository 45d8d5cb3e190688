-- mutex/release_all: end the grants of several locks for which nobody waits.
-- KEYS  of each lock, one lock after the other (at most 8 locks)  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 number of locks, and then of each lock  2 hold id  3 token of the grant
-- Returns  for each lock {1, 0}: released
--          or nothing: this lock is as it was, and mutex/release is to be called, because somebody waits for the lock,
--          the grant is over, or something is unusual
-- Repeatable: a second call after a lost reply releases nothing.

--@include common/numbers.lua

local count, answers = whole(ARGV[1], 1), {}
if not (count and count <= 8 and ARGV[2 * count + 1]) then
    return redis.error_reply('ERR holdfast: number out of range')
end
--@each 8 4 mutex/common/release_one.lua
return answers
