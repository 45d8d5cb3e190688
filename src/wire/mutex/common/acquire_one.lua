-- The lock NTH of mutex/acquire_all: the caller gets it.
if NTH <= count then
    local mark, floor = marks[NTH], tonumber(ARGV[3 * NTH + 2])
    redis.call('SET', KEYS[1], ARGV[3 * NTH], 'PX', ARGV[3 * NTH + 1])
--@paste common/steps/take_token.lua
--@paste common/steps/remember_token.lua
    answers[NTH] = {1, mark}
end
