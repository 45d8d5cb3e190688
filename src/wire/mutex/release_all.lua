-- mutex/release_all: end the grants of several locks for which nobody waits.
-- KEYS  of each lock, one lock after the other (at most 8 locks):  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 number of locks, then of each lock:  hold id, token of the grant that is meant
-- Returns  for each lock {1, 0}: released
--          or nothing: this lock is as it was, and mutex/release is to be called, because somebody waits for the lock,
--          the grant is over, or something is unusual
-- Repeatable: a second call after a lost reply releases nothing.

local count, answers = tonumber(ARGV[1]), {}
--@each 8 4 mutex/common/release_one.lua
return answers
