-- The lock NTH of mutex/release_all. A call that fails must not end the script: other locks may be released already.
if NTH <= count then
    local is_held = redis.pcall('GET', KEYS[1]) == ARGV[2 * NTH] and redis.pcall('GET', KEYS[4]) == ARGV[2 * NTH + 1]
    local is_simple = is_held and redis.pcall('EXISTS', KEYS[2], KEYS[3]) == 0
    answers[NTH] = is_simple and redis.pcall('DEL', KEYS[1]) == 1 and {1, 0}
end
